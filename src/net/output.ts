import { latin1 } from "./latin1.ts";
import type { Transport } from "./transport.ts";

/** Body bytes up to this are gathered with what is around them; more are written as they are, without a copy if possible. */
const INLINE_BYTES = 8192;
/** Gathered text that goes out without waiting for `flush`. */
const GATHER_LIMIT = 32 * 1024;

/** Gathers heads, framing and small body pieces of one turn into one write. */
export class Output {
  readonly #transport: Transport;
  #pending = "";

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Adds latin1 text. It goes out with the next large piece of body or with `flush`. */
  text(text: string): void {
    this.#pending += text;
  }

  /** Adds `buffer[from, to)`, which need not stay as it is after the call. False = wait for the transport's drain. */
  bytes(buffer: Buffer, from: number, to: number): boolean {
    if (to - from <= INLINE_BYTES) {
      this.#pending += latin1(buffer, from, to);
      return this.#pending.length < GATHER_LIMIT || this.flush();
    }
    const transport = this.#transport;
    if (this.#pending === "") return transport.write(buffer, from, to);
    transport.cork();
    this.flush();
    transport.write(buffer, from, to);
    return transport.uncork();
  }

  /** Writes what was gathered. False = wait for the transport's drain. */
  flush(): boolean {
    if (this.#pending === "") return true;
    const text = this.#pending;
    this.#pending = "";
    return this.#transport.writeText(text);
  }
}
