import type { HeaderList } from "../../http/message.ts";

/** Body bytes that wait for something. */
export class HeldBody {
  #chunks: Buffer[] = [];
  size = 0;
  /** The last byte has come. */
  ended = false;
  trailers: HeaderList = [];

  add(buffer: Buffer, from: number, to: number): void {
    if (to === from) return;
    // What the engine hands over is valid during the call only.
    this.#chunks.push(Buffer.from(buffer.subarray(from, to)));
    this.size += to - from;
  }

  end(trailers: HeaderList): void {
    this.ended = true;
    this.trailers = trailers;
  }

  /** All bytes so far, in one piece. */
  whole(): Buffer {
    const [only, ...others] = this.#chunks;
    if (only === undefined) return EMPTY;
    if (others.length > 0) this.#chunks = [Buffer.concat(this.#chunks, this.size)];
    return this.#chunks[0] as Buffer;
  }

  /** The first `limit` bytes of what is there. */
  start(limit: number): Buffer {
    return this.whole().subarray(0, limit);
  }

  replace(bytes: Uint8Array): void {
    this.#chunks = bytes.length === 0 ? [] : [Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)];
    this.size = bytes.length;
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  clear(): void {
    this.#chunks = [];
    this.size = 0;
  }
}

const EMPTY = Buffer.alloc(0);
