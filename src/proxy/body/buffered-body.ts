import type { HeaderList } from "../../http/message.ts";
import type { BufferShare } from "./buffer-budget.ts";

/** Body bytes that wait for something. */
export class BufferedBody {
  readonly #share: BufferShare | undefined;
  #chunks: Buffer[] = [];
  size = 0;
  /** The last byte has come. */
  ended = false;
  trailers: HeaderList = [];

  /** `share`: where the bytes are counted; undefined for those of the gateway's own answers. */
  constructor(share: BufferShare | undefined) {
    this.#share = share;
  }

  /** False = there is no room left in the worker's budget, and nothing was added. */
  add(buffer: Buffer, from: number, to: number): boolean {
    if (to === from) return true;
    if (this.#share?.take(to - from) === false) return false;
    // What the engine hands over is valid during the call only.
    this.#chunks.push(Buffer.from(buffer.subarray(from, to)));
    this.size += to - from;
    return true;
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

  /** The new bytes are counted where there is room, and never refused: the policy has them already. */
  replace(bytes: Uint8Array): void {
    this.#share?.give(this.size);
    this.#share?.take(bytes.length);
    this.#chunks = bytes.length === 0 ? [] : [Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)];
    this.size = bytes.length;
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  clear(): void {
    this.#share?.give(this.size);
    this.#chunks = [];
    this.size = 0;
  }
}

const EMPTY = Buffer.alloc(0);
