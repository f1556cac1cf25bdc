/**
 * The alphabet of byte-level BPE (Radford et al. 2019): every byte has a printable character, so
 * tokens are strings without white space.
 */

const charOfByte: string[] = [];
const byteOfChar = new Map<string, number>();

let next = 256;
for (let byte = 0; byte < 256; ++byte) {
  const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
  const char = String.fromCharCode(printable ? byte : next++);
  charOfByte.push(char);
  byteOfChar.set(char, byte);
}

const utf8 = new TextEncoder();

/** The UTF-8 bytes of a text, each written as its character of the alphabet. */
export function byteCharacters(text: string): string {
  let result = '';
  for (const byte of utf8.encode(text)) result += charOfByte[byte]!;
  return result;
}

/** The bytes that a token stands for; undefined if it has a character outside the alphabet. */
export function bytesOfToken(token: string): Uint8Array | undefined {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; ++i) {
    const byte = byteOfChar.get(token.charAt(i));
    if (byte === undefined) return undefined;
    bytes[i] = byte;
  }
  return bytes;
}
