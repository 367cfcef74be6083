import { type HeaderList, type HttpResponse, removeHeader, setHeader } from "../../http/message.ts";
import { TUNNEL } from "../../http/stream.ts";
import type { BodyStart, MessageBody } from "../../policies/types.ts";
import { HeldBody } from "./held-body.ts";

/** What a response body does with the side it comes from. */
interface Source {
  pause(): void;
  resume(): void;
}

/** A response body that is held because a policy works on its head, or on the body itself. */
export class ResponseBody implements MessageBody {
  readonly held = new HeldBody();
  readonly #announced: number;
  readonly #response: HttpResponse;
  readonly #source: Source | undefined;
  #waiter: { readonly limit: number; readonly done: (whole: Uint8Array | undefined) => void } | undefined;
  /** The bytes of a policy stand in the place of those that came. */
  replaced = false;

  /** `announced`: bytes, or UNKNOWN_LENGTH. */
  constructor(announced: number, response: HttpResponse, source: Source | undefined) {
    this.#announced = announced;
    this.#response = response;
    this.#source = source;
  }

  /** Bytes that the client is told to expect. */
  get length(): number {
    return this.replaced ? this.held.size : this.#announced;
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
    if (held.size > limit || this.#announced > limit) return Promise.resolve(undefined);
    return new Promise((done) => {
      this.#waiter = { limit, done };
    });
  }

  get empty(): boolean {
    return this.length === 0;
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
    this.held.add(buffer, from, to);
    if (this.#waiter !== undefined && this.held.size <= this.#waiter.limit) return;
    // Nobody waits for the end of it: it stays where it is until the head has gone out.
    this.#source?.pause();
    this.#answer(undefined);
  }

  end(trailers: HeaderList): void {
    this.held.end(trailers);
    this.#answer(this.held.whole());
  }

  #answer(whole: Uint8Array | undefined): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    waiter?.done(whole);
  }
}
