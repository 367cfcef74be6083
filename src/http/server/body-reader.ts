import { ChunkedDecoder } from "../h1/chunked.ts";
import type { RequestHead } from "../h1/parse-head.ts";
import type { HeaderList } from "../message/message.ts";
import { BodyRate } from "../pace.ts";
import { UNKNOWN_LENGTH } from "../stream.ts";

/** Up to this many bytes of a request body are read and discarded after an early response: cheaper than a new connection. */
const DISCARD_BYTES = 64 * 1024;
const NO_HEADERS: HeaderList = [];

/** Removes the framing from request bodies (RFC 9112 6), one after another. */
export class BodyReader extends BodyRate {
  #decoder: ChunkedDecoder | undefined;
  #chunked = false;
  #left = 0;

  /** Returns the length: UNKNOWN_LENGTH for a chunked body, 0 for none. */
  begin(head: RequestHead): number {
    this.reset();
    this.#chunked = head.chunked;
    if (head.chunked) {
      this.#decoder ??= new ChunkedDecoder();
      this.#decoder.reset(head.rawNames !== null);
      return UNKNOWN_LENGTH;
    }
    this.#left = Math.max(0, head.contentLength);
    return this.#left;
  }

  /** Passes the body bytes of `buffer[at, end)` to `sink`. Returns where the body or the bytes end, -1 if the framing is broken. */
  read(buffer: Buffer, at: number, end: number, sink: { onBody(b: Buffer, from: number, to: number): void }): number {
    if (this.#chunked) return (this.#decoder as ChunkedDecoder).push(buffer, at, end, sink);
    const to = Math.min(end, at + this.#left);
    this.#left -= to - at;
    sink.onBody(buffer, at, to);
    return to;
  }

  get done(): boolean {
    return this.#chunked ? (this.#decoder as ChunkedDecoder).done : this.#left === 0;
  }

  get trailers(): HeaderList {
    return this.#chunked ? (this.#decoder as ChunkedDecoder).trailers : NO_HEADERS;
  }

  /** What is wrong with the framing. */
  get error(): string {
    return this.#decoder?.error ?? "";
  }

  /** Whether the rest is small and sure to come, so that reading it is cheaper than another connection. */
  get discardable(): boolean {
    // The length of a chunked body is unknown.
    return !this.#chunked && this.#left <= DISCARD_BYTES;
  }
}
