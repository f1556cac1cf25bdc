/** Bytes of this thread's heap and array buffers, garbage included; the module's own memory is not. */
export function javaScriptBytes(): number;
/** The same after a collection of garbage. */
export function javaScriptBytesInUse(): number;
