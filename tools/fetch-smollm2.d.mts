/** Path of the SmolLM2 GGUF file, or undefined where it has not been fetched. */
export function smollm2Path(): string | undefined;
