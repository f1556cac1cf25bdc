/** Bytes of this thread's heap and array buffers, garbage included, without the module's memory. */
export function javaScriptBytes(): number;
/** The same after a collection of garbage. */
export function javaScriptBytesInUse(): number;
