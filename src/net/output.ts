import { latin1Slice } from "./node-internals.ts";
import { READ_SIZE } from "./read-buffer.ts";
import type { Transport } from "./transport.ts";
import { type TurnOutput, writeAtEndOfTurn } from "./turn.ts";

/** Body bytes up to this are gathered as text with what is around them; more are written as they are, without a copy if possible. */
const INLINE_BYTES = 8192;
/** Gathered text that goes out without waiting for `flush`. */
const TEXT_LIMIT = 32 * 1024;
/** The same for pieces: what one read brings goes out in one write. */
const GATHER_LIMIT = READ_SIZE;

/** Gathers heads, framing and pieces of body of one turn into one write. */
export class Output implements TurnOutput {
  readonly #transport: Transport;
  /** Comes after what the transport has gathered. */
  #pending = "";
  #listed = false;

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
      this.#pending += latin1Slice(buffer, from, to);
      return this.#pending.length < TEXT_LIMIT || this.flush();
    }
    const transport = this.#transport;
    this.#gatherText();
    transport.gather(buffer, from, to);
    return transport.gathered < GATHER_LIMIT || transport.flush();
  }

  /** Writes what was gathered. False = wait for the transport's drain. */
  flush(): boolean {
    const transport = this.#transport;
    if (transport.gathered > 0) {
      this.#gatherText();
      return transport.flush();
    }
    const text = this.#pending;
    if (text === "") return true;
    this.#pending = "";
    return transport.writeText(text);
  }

  /** Writes what was gathered at the end of the turn (turn.ts). No backpressure: at most TEXT_LIMIT may wait. */
  flushAtEndOfTurn(): void {
    if (this.#pending.length >= TEXT_LIMIT || this.#transport.gathered > 0) this.flush();
    else if (!this.#listed) {
      this.#listed = true;
      writeAtEndOfTurn(this);
    }
  }

  endTurn(): void {
    this.#listed = false;
    this.flush();
  }

  /** Drops what was gathered. False: a large piece of body is part of it, which cannot be taken back. */
  drop(): boolean {
    if (this.#transport.gathered > 0) return false;
    this.#pending = "";
    return true;
  }

  #gatherText(): void {
    if (this.#pending === "") return;
    this.#transport.gatherText(this.#pending);
    this.#pending = "";
  }
}
