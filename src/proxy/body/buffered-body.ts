/**
 * A message body that the gateway processes: held until it may be sent, read as a whole by policies, replaced by them, piped through
 * stages, or kept for a replay. One class serves both directions: the side of the exchange that owns the body connects its source and
 * destination. A body that no policy works on has no `BufferedBody`; its bytes are forwarded directly.
 */
import { CollectedBytes, NO_BYTES } from "../../base/collected-bytes.ts";
import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import { decimal, type HeaderList, type LocalReply, removeHeader, setHeader } from "../../http/message/message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { BodySink, BodyStage, BodyStart, IncomingBody, StageOwner } from "../../policies/contract/types.ts";
import type { ArrivingBody, BufferShare } from "./buffer-budget.ts";
import { type StageOutput, Stages } from "./stages.ts";

/** Where the bytes go. `buffer[from, to)` is valid during the call only. False = wait. */
export interface BodyDestination {
  sendBody(buffer: Buffer, from: number, to: number): boolean;
  sendEnd(trailers: HeaderList): void;
  /** Sends the bytes that were collected. */
  flush(): boolean;
}

/** The side of an exchange that a body belongs to. */
export interface BodySide {
  /** The exchange is over: further bytes of the body are dropped. */
  readonly closed: boolean;
  /** The bytes come from a client. */
  readonly fromClient: boolean;
  /** undefined = there is no destination yet, so bytes are held. */
  readonly destination: BodyDestination | undefined;
  pauseSource(): void;
  /** Also starts a source that has not been read from yet. */
  resumeSource(): void;
  /** The body cannot continue: responds to the client, or aborts a response whose head has been sent. */
  breakOff(answer: GatewayError | LocalReply, owner?: StageOwner): void;
}

/** Bytes that stages may yield before there is a destination; then the source is paused. */
const STAGED_BYTES = 64 * 1024;

/** A reader that waits for the end of the body while at most `limit` bytes are held. */
interface Waiter {
  readonly limit: number;
  readonly done: (whole: Uint8Array | undefined) => void;
}

/** Readers of copies, and what has arrived for them. */
interface Copies {
  readonly readers: readonly Waiter[];
  readonly bytes: CollectedBytes;
}

export class BufferedBody implements IncomingBody, StageOutput, ArrivingBody {
  readonly #message: { readonly headers: HeaderList };
  /** Bytes, UNKNOWN_LENGTH or TUNNEL, as the sender announced them. */
  readonly #announced: number;
  readonly #side: BodySide;
  readonly #share: BufferShare | undefined;
  readonly #held = new CollectedBytes();
  /** Bytes that have arrived since `reportArrival`. */
  #arriving = 0;
  /** The last byte has arrived, or has left the last stage if there are stages. */
  #ended = false;
  #trailers: HeaderList = [];
  #replaced = false;
  /** Further bytes of the sender are dropped. */
  #dropsRest = false;
  /** Bytes kept after they were sent, so that they can be sent again. */
  #keep = 0;
  /** Some bytes have been sent and are no longer held. */
  #lost = false;
  #waiters: Waiter[] = [];
  /** Of a body that a policy has replaced or piped while copies of it were waited for: their readers, and what arrives for them. */
  #copies: Copies | undefined;
  /** The reader can do without the whole body, so bytes for which the budget has no room do not end the exchange. */
  #lenient = false;
  #stages: Stages | undefined;

  /** `share` accounts for the bytes that are held; undefined for bodies that the gateway makes itself. */
  constructor(
    message: { readonly headers: HeaderList },
    announced: number,
    side: BodySide,
    share: BufferShare | undefined,
  ) {
    this.#message = message;
    this.#announced = announced;
    this.#side = side;
    this.#share = share;
  }

  /** A body that is complete from the start: empty, or the body of a response that the gateway makes. */
  static of(
    bytes: Buffer,
    message: { readonly headers: HeaderList },
    side: BodySide,
    share: BufferShare | undefined,
  ): BufferedBody {
    const body = new BufferedBody(message, bytes.length, side, share);
    if (bytes.length > 0) body.#held.adopt(bytes);
    body.#ended = true;
    return body;
  }

  /** Bytes for the receiver to expect, or UNKNOWN_LENGTH or TUNNEL. */
  get length(): number {
    if (this.#replaced) return this.#held.size;
    return this.#stages === undefined ? this.#announced : UNKNOWN_LENGTH;
  }

  /** Whether a policy has replaced the bytes. */
  get replaced(): boolean {
    return this.#replaced;
  }

  get empty(): boolean {
    return this.length === 0 || this.#announced === TUNNEL;
  }

  /** Bytes are held, or may still come. */
  get mayHaveBytes(): boolean {
    return this.#held.size > 0 || !this.#ended;
  }

  /** The body can be sent from its first byte on. */
  get repeatable(): boolean {
    return !this.#lost;
  }

  /** Bytes pass through stages, so they must not bypass this object. */
  get staged(): boolean {
    return this.#stages !== undefined;
  }

  /** Trailers that have arrived and are not sent yet. */
  get trailers(): HeaderList {
    return this.#trailers;
  }

  /** The whole body once it has arrived. */
  get bytes(): Uint8Array | undefined {
    return this.#complete && !this.#lost ? this.#held.whole() : undefined;
  }

  /** The most bytes that a reader waits for; 0 if none waits. */
  get awaited(): number {
    return Math.max(0, ...this.#waiters.map(({ limit }) => limit));
  }

  get #complete(): boolean {
    return this.#ended || this.#replaced;
  }

  // ── for policies ──

  buffer(limit: number): Promise<Uint8Array | undefined> {
    if (!this.#complete && this.length > limit) return Promise.resolve(undefined);
    return this.#read(limit);
  }

  tryBuffer(limit: number): Promise<Uint8Array | undefined> {
    this.#lenient = true;
    return this.buffer(limit);
  }

  async peek(limit: number): Promise<BodyStart> {
    const whole = await this.#read(limit);
    if (whole !== undefined) return { bytes: whole, complete: true };
    return { bytes: this.#held.whole().subarray(0, limit), complete: false };
  }

  copy(limit: number): Promise<Uint8Array | undefined> {
    if (this.#complete) return this.buffer(limit);
    if (this.length > limit) return Promise.resolve(undefined);
    this.keep(limit);
    return this.#wait(limit);
  }

  replace(bytes: Uint8Array): void {
    this.#setCopiesApart();
    this.#replaced = true;
    this.#clear();
    // Counted if there is room, and never rejected: the policy holds the bytes already.
    this.#share?.tryTake(bytes.length);
    if (bytes.length > 0) this.#held.adopt(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    const { headers } = this.#message;
    removeHeader(headers, "trailer");
    setHeader(headers, "content-length", decimal(bytes.length));
  }

  through(make: (sink: BodySink) => BodyStage): void {
    this.#setCopiesApart();
    const chunks = this.#held.pieces;
    const trailers = this.#trailers;
    const replaced = this.#replaced;
    const ended = this.#ended;
    removeHeader(this.#message.headers, "content-length");
    this.#clear();
    this.#ended = false;
    this.#replaced = false;
    this.#dropsRest ||= replaced;
    this.#stages ??= new Stages(this);
    // A stage may yield bytes at once, so the held bytes were taken out before.
    const stage = this.#stages.add(make);
    for (const chunk of chunks) stage.write(chunk);
    if (ended || replaced) stage.end(replaced ? [] : trailers);
    else this.#side.resumeSource();
  }

  // ── from the source ──

  /** False = the source has to wait. */
  receive(buffer: Buffer, from: number, to: number): boolean {
    if (this.#copies !== undefined) this.#copy(this.#copies, buffer, from, to);
    if (this.#dropsRest || this.#replaced) return true;
    return this.#stages === undefined ? this.#accept(buffer, from, to) : this.#stages.write(buffer, from, to);
  }

  /** The last byte has arrived. */
  end(trailers: HeaderList): void {
    if (this.#copies !== undefined) this.#endCopies(this.#copies.bytes.whole());
    if (this.#stages === undefined) this.#finish(trailers);
    else if (!this.#dropsRest && !this.#replaced) this.#stages.end(trailers);
  }

  // ── to the destination ──

  /** Keeps up to `limit` bytes after they were sent, for another attempt. */
  keep(limit: number): void {
    this.#keep = Math.max(this.#keep, limit);
  }

  /** Sends what is held and lets the rest follow. */
  sendTo(destination: BodyDestination): void {
    let more = true;
    for (const chunk of this.#held.pieces) more = destination.sendBody(chunk, 0, chunk.length);
    if (this.#complete) destination.sendEnd(this.#replaced ? [] : this.#trailers);
    else if (this.#held.size > this.#keep) this.#lose();
    if (this.#ended || this.#side.closed) return;
    more = destination.flush() && more;
    // The rest of a body that was replaced is read and dropped.
    if (!more && !this.#replaced) return;
    this.#side.resumeSource();
    this.drained();
  }

  /** The destination has room again. The side resumes the source; stages may have bytes waiting too. */
  drained(): void {
    if (!this.#side.closed) this.#stages?.drained();
  }

  // ── from the last stage ──

  take(bytes: Buffer): boolean {
    if (this.#side.closed) return true;
    const more = this.#accept(bytes, 0, bytes.length);
    this.reportArrival();
    const { destination } = this.#side;
    // Without a destination, stages may need more input before they yield anything.
    const paused = destination === undefined ? !more && this.#held.size > STAGED_BYTES : !more || !destination.flush();
    if (paused) this.#side.pauseSource();
    return !paused;
  }

  finish(trailers: HeaderList): void {
    if (!this.#side.closed) this.#finish(trailers);
  }

  resume(): void {
    if (!this.#side.closed) this.#side.resumeSource();
  }

  breakOff(answer: GatewayError | LocalReply, owner?: StageOwner): void {
    this.#side.breakOff(answer, owner);
  }

  #accept(buffer: Buffer, from: number, to: number): boolean {
    if (this.#replaced) return true;
    const { destination } = this.#side;
    const held = destination === undefined || (!this.#lost && this.#held.size + to - from <= this.#keep);
    if (!held) this.#lose();
    else if (!this.#add(buffer, from, to, destination === undefined && !this.#lenient)) {
      // Only bytes without a destination must be held; copies are optional.
      if (destination !== undefined) this.#lose();
      else if (this.#lenient) this.#giveUp(buffer, from, to);
      else {
        this.#reject("TG_BUFFERS_FULL");
        return true;
      }
    }
    this.#dismissWaiters();
    this.#arriving += to - from;
    return destination === undefined ? this.#waiters.length > 0 : destination.sendBody(buffer, from, to);
  }

  /**
   * All bytes of one read, or of one output of the stages, are there. Not for each chunk: that would read a clock. Only a client that
   * we wait for can be late: not while a policy works on what has arrived.
   */
  reportArrival(): void {
    if (this.#arriving === 0 || !this.#side.fromClient) return;
    if (this.#held.size > 0 && (this.#waiters.length > 0 || this.#side.destination !== undefined))
      this.#share?.arrived(this, this.#arriving);
    else this.#share?.stopArriving();
    this.#arriving = 0;
  }

  giveWay(slow: boolean): void {
    // Copies for another attempt are optional.
    if (this.#side.destination !== undefined) this.#lose();
    else if (slow) this.#reject("TG_CLIENT_TIMEOUT", "the body arrives too slowly while other bodies need the room");
    else this.#reject("TG_BUFFERS_FULL", "the client's bodies take more room than those of other clients");
  }

  #finish(trailers: HeaderList): void {
    this.#ended = true;
    this.#share?.stopArriving();
    this.#trailers = trailers;
    if (!this.#replaced) this.#side.destination?.sendEnd(trailers);
    if (this.#waiters.length > 0) this.#answer(this.#lost ? undefined : this.#held.whole());
  }

  /** The worker's budget for buffered bodies is used up. */
  #reject(code: ErrorCode, detail?: string): void {
    this.#dropsRest = true;
    this.#clear();
    this.#side.breakOff(new GatewayError(code, detail));
  }

  /** Holds bytes for which the budget has no room: at most those of one read, because the source waits from now on. */
  #giveUp(buffer: Buffer, from: number, to: number): void {
    this.#held.append(buffer, from, to);
    this.#answer(undefined);
  }

  #lose(): void {
    this.#lost = true;
    this.#clear();
    this.#answer(undefined);
  }

  // ── readers ──

  #read(limit: number): Promise<Uint8Array | undefined> {
    if (this.#complete) return Promise.resolve(this.#held.size <= limit ? this.#held.whole() : undefined);
    // Tunnelled bytes are not a message body.
    if (this.#announced === TUNNEL) return Promise.resolve(NO_BYTES);
    if (this.#held.size > limit) return Promise.resolve(undefined);
    const whole = this.#wait(limit);
    this.#side.resumeSource();
    this.drained();
    return whole;
  }

  #wait(limit: number): Promise<Uint8Array | undefined> {
    return new Promise((done) => this.#waiters.push({ limit, done }));
  }

  /** Ends the wait of readers for which the body has become too long. */
  #dismissWaiters(): void {
    // Most chunks dismiss no waiter, and a sender may send millions of them.
    if (!this.#waiters.some(({ limit }) => this.#held.size > limit)) return;
    const dismissed = this.#waiters.filter(({ limit }) => this.#held.size > limit);
    this.#waiters = this.#waiters.filter(({ limit }) => this.#held.size <= limit);
    for (const { done } of dismissed) done(undefined);
  }

  /** Policies that act on a body wait for none of its readers but those of copies, which are of what the sender sends. */
  #setCopiesApart(): void {
    if (this.#waiters.length === 0 || this.#complete || this.#stages !== undefined) return;
    this.#copies = { readers: this.#waiters.splice(0), bytes: new CollectedBytes() };
    for (const piece of this.#held.pieces)
      if (this.#copies !== undefined) this.#copy(this.#copies, piece, 0, piece.length);
  }

  #copy({ readers, bytes }: Copies, buffer: Buffer, from: number, to: number): void {
    const isTooLong = readers.every(({ limit }) => bytes.size + to - from > limit);
    if (isTooLong || this.#share?.tryTake(to - from) === false) this.#endCopies(undefined);
    else bytes.append(buffer, from, to);
  }

  #endCopies(whole: Uint8Array | undefined): void {
    if (this.#copies === undefined) return;
    const { readers, bytes } = this.#copies;
    this.#copies = undefined;
    this.#share?.give(bytes.size);
    for (const { limit, done } of readers) done(whole === undefined || whole.length > limit ? undefined : whole);
  }

  #answer(whole: Uint8Array | undefined): void {
    for (const { done } of this.#waiters.splice(0)) done(whole);
  }

  // ── held bytes ──

  /** `needed`: other bodies have to give way. False = the worker's budget has no room; nothing was added. */
  #add(buffer: Buffer, from: number, to: number, needed: boolean): boolean {
    if (to === from) return true;
    const share = this.#share;
    if ((needed ? share?.take(to - from) : share?.tryTake(to - from)) === false) return false;
    // The source's buffer is valid during the call only.
    this.#held.append(buffer, from, to);
    return true;
  }

  #clear(): void {
    this.#share?.give(this.#held.size);
    this.#held.clear();
  }
}
