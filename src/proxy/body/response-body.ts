import { GatewayError } from "../../base/errors.ts";
import { type HeaderList, type HttpResponse, type LocalReply, removeHeader, setHeader } from "../../http/message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { BodySink, BodyStage, BodyStart, MessageBody } from "../../policies/types.ts";
import type { BufferShare } from "./buffer-budget.ts";
import { BufferedBody } from "./buffered-body.ts";
import { type StagedBody, Stages } from "./stages.ts";

/** What a response body does with the side it comes from. */
interface Source {
  pause(): void;
  resume(): void;
}

/** Where a response body goes once its head has gone out. */
export interface ResponseOut {
  /** False = wait. */
  write(bytes: Buffer): boolean;
  end(trailers: HeaderList): void;
}

/** Bytes that stages may give before the head has gone out. */
const STAGED_BYTES = 64 * 1024;

/** A response body that is held because a policy works on its head, or on the body itself. */
export class ResponseBody implements MessageBody, StagedBody {
  readonly held: BufferedBody;
  readonly #announced: number;
  readonly #response: HttpResponse;
  /** undefined once it has sent everything: the connection may serve another exchange by then. */
  #source: Source | undefined;
  #waiter: { readonly limit: number; readonly done: (whole: Uint8Array | undefined) => void } | undefined;
  /** The bytes of a policy stand in the place of those that came. */
  replaced = false;

  readonly #stages: Stages = new Stages(this);
  readonly #breakOff: (answer: GatewayError | LocalReply) => void;
  #out: ResponseOut | undefined;

  /** `announced`: bytes, or UNKNOWN_LENGTH. */
  constructor(
    announced: number,
    response: HttpResponse,
    source: Source | undefined,
    breakOff: (answer: GatewayError | LocalReply) => void = () => {},
    share?: BufferShare,
  ) {
    this.held = new BufferedBody(share);
    this.#breakOff = breakOff;
    this.#announced = announced;
    this.#response = response;
    this.#source = source;
  }

  /** Bytes that the client is told to expect. */
  get length(): number {
    if (this.replaced) return this.held.size;
    return this.#stages.empty ? this.#announced : UNKNOWN_LENGTH;
  }

  /** The whole body, once it is there. */
  get bytes(): Uint8Array | undefined {
    return this.held.ended || this.replaced ? this.held.whole() : undefined;
  }

  buffer(limit: number): Promise<Uint8Array | undefined> {
    const { held } = this;
    // What goes through a tunnel is nobody's body.
    if (this.#announced === TUNNEL) return Promise.resolve(new Uint8Array(0));
    if (held.ended || this.replaced) return Promise.resolve(held.size <= limit ? held.whole() : undefined);
    if (held.size > limit || this.length > limit) return Promise.resolve(undefined);
    return new Promise((done) => {
      this.#waiter = { limit, done };
      this.#source?.resume();
    });
  }

  get empty(): boolean {
    return this.length === 0 || this.#announced === TUNNEL;
  }

  async peek(limit: number): Promise<BodyStart> {
    const { held } = this;
    let whole: Uint8Array | undefined;
    if (held.ended || this.replaced) whole = held.size <= limit ? held.whole() : undefined;
    else if (held.size <= limit)
      whole = await new Promise((done) => {
        this.#waiter = { limit, done };
        this.#source?.resume();
      });
    return whole !== undefined ? { bytes: whole, complete: true } : { bytes: held.start(limit), complete: false };
  }

  replace(bytes: Uint8Array): void {
    this.replaced = true;
    this.held.replace(bytes);
    const { headers } = this.#response;
    removeHeader(headers, "trailer");
    setHeader(headers, "content-length", String(bytes.length));
  }

  receive(buffer: Buffer, from: number, to: number): void {
    if (this.replaced) return;
    if (this.#stages.empty) this.#accept(buffer, from, to);
    else if (!this.#stages.write(buffer, from, to)) this.#source?.pause();
  }

  /** Stages are at work: the body goes on through them when the head has gone out. */
  get staged(): boolean {
    return !this.#stages.empty;
  }

  through(make: (sink: BodySink) => BodyStage): void {
    const { held, replaced } = this;
    const { chunks, ended, trailers } = held;
    removeHeader(this.#response.headers, "content-length");
    held.clear();
    held.ended = false;
    this.replaced = false;
    // It may give bytes at once: what it replaces is out of the way by now.
    const stage = this.#stages.add(make);
    for (const chunk of chunks) stage.write(chunk);
    if (ended || replaced) stage.end(replaced ? [] : trailers);
    else this.#source?.resume();
  }

  /** The head has gone out: from now on bytes go there. */
  flowTo(out: ResponseOut): void {
    this.#out = out;
  }

  take(bytes: Buffer): void {
    if (this.replaced) return;
    if (this.#out === undefined) this.#accept(bytes, 0, bytes.length);
    else if (!this.#out.write(bytes)) this.#source?.pause();
  }

  finish(trailers: HeaderList): void {
    this.held.end(trailers);
    if (this.#out !== undefined) this.#out.end(trailers);
    else this.#answer(this.held.whole());
  }

  resume(): void {
    this.#source?.resume();
  }

  breakOff(answer: GatewayError | LocalReply): void {
    this.#breakOff(answer);
  }

  #accept(buffer: Buffer, from: number, to: number): void {
    if (!this.held.add(buffer, from, to)) {
      this.held.clear();
      this.#breakOff(new GatewayError("TG_BUFFERS_FULL"));
      return;
    }
    if (this.#waiter !== undefined && this.held.size <= this.#waiter.limit) return;
    // Nobody waits for the end of it: it stays where it is until the head has gone out. Stages may need more to give any.
    if (this.#stages.empty || this.held.size > STAGED_BYTES) this.#source?.pause();
    this.#answer(undefined);
  }

  end(trailers: HeaderList): void {
    this.#source = undefined;
    if (this.#stages.empty) this.finish(trailers);
    else if (!this.replaced) this.#stages.end(trailers);
  }

  #answer(whole: Uint8Array | undefined): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    waiter?.done(whole);
  }
}
