import { type HeaderList, type HttpRequest, removeHeader, setHeader } from "../../http/message.ts";
import { type Downstream, UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { BodyStart, MessageBody } from "../../policies/types.ts";
import type { UpstreamConnection } from "../../upstream/connection.ts";
import { HeldBody } from "./held-body.ts";

type Waiter = (whole: Uint8Array | undefined) => void;

/** A request body that somebody reads, keeps or replaces; without one, bytes flow from the client straight to the upstream. */
export class RequestBody implements MessageBody {
  readonly #downstream: Downstream;
  readonly #request: HttpRequest;
  readonly #held = new HeldBody();
  /** Wait for the end while at most so many bytes are held. */
  #waiters: { readonly limit: number; readonly done: Waiter }[] = [];
  #reading = false;
  #replaced = false;
  /** Bytes that are kept after they were sent, so that they can be sent again; 0 = none. */
  #keep = 0;
  /** Bytes have gone to an upstream that are not held any more. */
  #lost = false;

  constructor(downstream: Downstream, request: HttpRequest) {
    this.#downstream = downstream;
    this.#request = request;
  }

  /** The body can be sent from its beginning. */
  get repeatable(): boolean {
    return !this.#lost;
  }

  /** The whole body, once it is there. */
  get bytes(): Uint8Array | undefined {
    return this.#complete && !this.#lost ? this.#held.whole() : undefined;
  }

  get #complete(): boolean {
    return this.#held.ended || this.#replaced || this.#downstream.requestLength === 0;
  }

  buffer(limit: number): Promise<Uint8Array | undefined> {
    const held = this.#held;
    if (this.#complete) return Promise.resolve(held.size <= limit ? held.whole() : undefined);
    if (held.size > limit || this.#downstream.requestLength > limit) return Promise.resolve(undefined);
    return new Promise((done) => {
      this.#waiters.push({ limit, done });
      this.#read();
    });
  }

  get empty(): boolean {
    return this.length === 0;
  }

  async peek(limit: number): Promise<BodyStart> {
    const held = this.#held;
    let whole: Uint8Array | undefined;
    if (this.#complete) whole = held.size <= limit ? held.whole() : undefined;
    else if (held.size <= limit)
      whole = await new Promise((done) => {
        this.#waiters.push({ limit, done });
        this.#read();
      });
    return whole !== undefined ? { bytes: whole, complete: true } : { bytes: held.start(limit), complete: false };
  }

  /** As `buffer`, but the bytes go on at once: for those who want a copy. Not kept beyond `limit`. */
  copy(limit: number): Promise<Uint8Array | undefined> {
    if (this.#complete) return this.buffer(limit);
    if (this.#downstream.requestLength > limit) return Promise.resolve(undefined);
    this.keep(limit);
    return new Promise((done) => this.#waiters.push({ limit, done }));
  }

  replace(bytes: Uint8Array): void {
    this.#replaced = true;
    this.#held.replace(bytes);
    const { headers } = this.#request;
    removeHeader(headers, "trailer");
    setHeader(headers, "content-length", String(bytes.length));
  }

  /** Keeps up to `limit` bytes for another attempt. */
  keep(limit: number): void {
    this.#keep = Math.max(this.#keep, limit);
  }

  /** Bytes that the upstream is told to expect. */
  get length(): number {
    return this.#replaced ? this.#held.size : this.#downstream.requestLength;
  }

  /** From the client. Returns false when the client has to wait. */
  receive(buffer: Buffer, from: number, to: number, upstream: UpstreamConnection | undefined): boolean {
    if (this.#replaced) return true;
    const held = this.#held;
    if (upstream === undefined || (!this.#lost && held.size + to - from <= this.#keep)) held.add(buffer, from, to);
    else this.#lose();
    this.#giveUp();
    if (upstream !== undefined) return upstream.sendBody(buffer, from, to);
    return this.#waiters.length > 0;
  }

  /** The last byte has come from the client. */
  end(trailers: HeaderList, upstream: UpstreamConnection | undefined): void {
    this.#held.end(trailers);
    if (!this.#replaced) upstream?.sendEnd(trailers);
    const whole = this.#held.whole();
    for (const { done } of this.#waiters.splice(0)) done(this.#lost ? undefined : whole);
  }

  /** Sends what is held, and lets the rest follow. */
  sendTo(upstream: UpstreamConnection): void {
    const held = this.#held;
    let more = true;
    for (const chunk of held.chunks) more = upstream.sendBody(chunk, 0, chunk.length);
    if (this.#complete) upstream.sendEnd(this.#replaced ? [] : held.trailers);
    else if (held.size > this.#keep) this.#lose();
    if (held.ended) return;
    more = upstream.flush() && more;
    // What replaced bytes leave unread is read and dropped.
    if (more || this.#replaced) this.#read();
  }

  #read(): void {
    if (this.#reading) this.#downstream.resumeBody();
    else {
      this.#reading = true;
      this.#downstream.readBody();
    }
  }

  #lose(): void {
    this.#lost = true;
    this.#held.clear();
    for (const { done } of this.#waiters.splice(0)) done(undefined);
  }

  /** Those for whom the body has become too long wait no longer. */
  #giveUp(): void {
    const { size } = this.#held;
    if (this.#waiters.length === 0) return;
    const over = this.#waiters.filter(({ limit }) => size > limit);
    this.#waiters = this.#waiters.filter(({ limit }) => size <= limit);
    for (const { done } of over) done(undefined);
  }
}

/** Whether a request has, or may have, a body. */
export function hasBody({ requestLength }: Downstream): boolean {
  return requestLength > 0 || requestLength === UNKNOWN_LENGTH;
}
