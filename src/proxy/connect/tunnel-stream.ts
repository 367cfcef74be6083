import { Duplex } from "node:stream";
import type { Downstream } from "../../http/stream.ts";

const TAKEN = (): void => {};

/**
 * The bytes inside a tunnel of a client, as a stream that another bind serves like an accepted socket. Each direction ends by
 * itself; a side that takes nothing stops the other.
 */
export class TunnelStream extends Duplex {
  readonly #downstream: Downstream;
  bytesSent = 0;
  /** Goes on writing once the client takes bytes again. */
  #resumeWriting = TAKEN;

  constructor(downstream: Downstream) {
    super({ allowHalfOpen: true });
    this.#downstream = downstream;
  }

  // ── from the client ──

  /** `buffer[from, to)` is copied. */
  receive(buffer: Buffer, from: number, to: number): void {
    if (this.destroyed || this.push(Buffer.from(buffer.subarray(from, to)))) return;
    this.#downstream.pauseBody();
  }

  receiveEnd(): void {
    if (!this.destroyed) this.push(null);
  }

  onClientDrain(): void {
    const resume = this.#resumeWriting;
    this.#resumeWriting = TAKEN;
    resume();
  }

  // ── from whoever serves the stream ──

  /** As that of a socket: the client sees a reset. */
  resetAndDestroy(): this {
    return this.destroy();
  }

  override _read(): void {
    this.#downstream.resumeBody();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.bytesSent += bytes.length;
    const taken = this.#downstream.sendBody(bytes, 0, bytes.length);
    if (this.#downstream.flush() && taken) done();
    else this.#resumeWriting = done;
  }

  override _final(done: () => void): void {
    this.#downstream.sendEnd([]);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // After the end the client may still be taking what was written; what it sends is thrown away until it ends too.
    if (this.writableFinished) this.#downstream.resumeBody();
    else this.#downstream.abort();
    done(error);
  }
}
