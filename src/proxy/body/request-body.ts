import { GatewayError } from "../../base/errors.ts";
import { type HeaderList, type HttpRequest, type LocalReply, removeHeader, setHeader } from "../../http/message.ts";
import { type Downstream, UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { BodySink, BodyStage, BodyStart, MessageBody } from "../../policies/types.ts";
import type { Upstream } from "../../upstream/upstream.ts";
import type { BufferShare } from "./buffer-budget.ts";
import { BufferedBody } from "./buffered-body.ts";
import { type StagedBody, Stages } from "./stages.ts";

/** The exchange that a body belongs to. */
export interface BodyOwner {
  readonly upstream: Upstream | undefined;
  readonly closed: boolean;
  readonly bufferShare: BufferShare;
  breakOff(answer: GatewayError | LocalReply): void;
}

/** Bytes that stages may give before there is an upstream to take them. */
const STAGED_BYTES = 64 * 1024;

type Waiter = (whole: Uint8Array | undefined) => void;

/** A request body that somebody reads, keeps or replaces; without one, bytes flow from the client straight to the upstream. */
export class RequestBody implements MessageBody, StagedBody {
  readonly #downstream: Downstream;
  readonly #request: HttpRequest;
  readonly #held: BufferedBody;
  /** Wait for the end while at most so many bytes are held. */
  #waiters: { readonly limit: number; readonly done: Waiter }[] = [];
  #reading = false;
  #replaced = false;
  /** Bytes that are kept after they were sent, so that they can be sent again; 0 = none. */
  #keep = 0;
  /** Bytes have gone to an upstream that are not held any more. */
  #lost = false;
  readonly #owner: BodyOwner;
  readonly #stages: Stages = new Stages(this);
  /** What the client still sends stands no more for anything. */
  #ignored = false;

  constructor(downstream: Downstream, request: HttpRequest, owner: BodyOwner) {
    this.#owner = owner;
    this.#held = new BufferedBody(owner.bufferShare);
    this.#downstream = downstream;
    this.#request = request;
  }

  /** The body can be sent from its beginning. */
  get repeatable(): boolean {
    return !this.#lost;
  }

  /** What has come of the client's trailers and was not sent on yet. */
  get trailers(): HeaderList {
    return this.#held.trailers;
  }

  /** The whole body, once it is there. */
  get bytes(): Uint8Array | undefined {
    return this.#complete && !this.#lost ? this.#held.whole() : undefined;
  }

  get #complete(): boolean {
    return this.#held.ended || this.#replaced || (this.#stages.empty && this.#downstream.requestLength === 0);
  }

  buffer(limit: number): Promise<Uint8Array | undefined> {
    const held = this.#held;
    if (this.#complete) return Promise.resolve(held.size <= limit ? held.whole() : undefined);
    if (held.size > limit || this.length > limit) return Promise.resolve(undefined);
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
    if (this.length > limit) return Promise.resolve(undefined);
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
    if (this.#replaced) return this.#held.size;
    return this.#stages.empty ? this.#downstream.requestLength : UNKNOWN_LENGTH;
  }

  /** From the client. Returns false when the client has to wait. */
  receive(buffer: Buffer, from: number, to: number, upstream: Upstream | undefined): boolean {
    if (this.#ignored || this.#replaced) return true;
    return this.#stages.empty ? this.#accept(buffer, from, to, upstream) : this.#stages.write(buffer, from, to);
  }

  #accept(buffer: Buffer, from: number, to: number, upstream: Upstream | undefined): boolean {
    if (this.#replaced) return true;
    const held = this.#held;
    const kept = upstream === undefined || (!this.#lost && held.size + to - from <= this.#keep);
    if (kept && !held.add(buffer, from, to)) {
      // Only what has nowhere else to go must be held; copies can be done without.
      if (upstream === undefined) {
        this.#refuse();
        return true;
      }
      this.#lose();
    } else if (!kept) this.#lose();
    this.#giveUp();
    if (upstream !== undefined) return upstream.sendBody(buffer, from, to);
    return this.#waiters.length > 0;
  }

  through(make: (sink: BodySink) => BodyStage): void {
    const held = this.#held;
    const { chunks, ended, trailers } = held;
    const replaced = this.#replaced;
    removeHeader(this.#request.headers, "content-length");
    held.clear();
    held.ended = false;
    this.#replaced = false;
    this.#ignored ||= replaced;
    // It may give bytes at once: what it replaces is out of the way by now.
    const stage = this.#stages.add(make);
    for (const chunk of chunks) stage.write(chunk);
    if (ended || replaced) stage.end(replaced ? [] : trailers);
    else this.#read();
  }

  /** From the last stage. */
  take(bytes: Buffer): void {
    const { upstream, closed } = this.#owner;
    if (closed) return;
    const more = this.#accept(bytes, 0, bytes.length, upstream);
    if (upstream !== undefined) {
      if (!more || !upstream.flush()) this.#downstream.pauseBody();
    } else if (!more && this.#held.size > STAGED_BYTES) this.#downstream.pauseBody();
  }

  finish(trailers: HeaderList): void {
    if (!this.#owner.closed) this.#finish(trailers, this.#owner.upstream);
  }

  resume(): void {
    if (!this.#owner.closed) this.#downstream.resumeBody();
  }

  breakOff(answer: GatewayError | LocalReply): void {
    this.#owner.breakOff(answer);
  }

  /** The last byte has come from the client. */
  end(trailers: HeaderList, upstream: Upstream | undefined): void {
    if (this.#stages.empty) this.#finish(trailers, upstream);
    else if (!this.#ignored) this.#stages.end(trailers);
  }

  #finish(trailers: HeaderList, upstream: Upstream | undefined): void {
    this.#held.end(trailers);
    if (!this.#replaced) upstream?.sendEnd(trailers);
    const whole = this.#held.whole();
    for (const { done } of this.#waiters.splice(0)) done(this.#lost ? undefined : whole);
  }

  /** Sends what is held, and lets the rest follow. */
  sendTo(upstream: Upstream): void {
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

  #refuse(): void {
    this.#ignored = true;
    this.#held.clear();
    this.#owner.breakOff(new GatewayError("TG_BUFFERS_FULL"));
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
