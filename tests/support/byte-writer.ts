/** Little-endian bytes, one value after the other. */
export class ByteWriter {
  private buffer = new Uint8Array(1024);
  private length = 0;

  u8(value: number): void {
    this.view(1).setUint8(0, value);
  }

  u32(value: number): void {
    this.view(4).setUint32(0, value, true);
  }

  u64(value: bigint): void {
    this.view(8).setBigUint64(0, value, true);
  }

  f32(value: number): void {
    this.view(4).setFloat32(0, value, true);
  }

  bytes(bytes: Uint8Array): void {
    this.view(bytes.length);
    this.buffer.set(bytes, this.length - bytes.length);
  }

  /** Zeros up to a multiple of `alignment`. */
  pad(alignment: number): void {
    this.view((alignment - (this.length % alignment)) % alignment);
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.buffer.slice(0, this.length);
  }

  /** The next `size` bytes, zero until written. */
  private view(size: number): DataView {
    const start = this.length;
    this.length += size;
    if (this.length > this.buffer.length) {
      const grown = new Uint8Array(2 * this.length);
      grown.set(this.buffer);
      this.buffer = grown;
    }
    return new DataView(this.buffer.buffer, start, size);
  }
}
