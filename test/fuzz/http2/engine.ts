/** The engine under test: one connection in either role, whose streams do random things within their rules. */
import { Http2Connection } from "../../../src/http/h2/connection.ts";
import type { FieldSection } from "../../../src/http/h2/hpack/decoder.ts";
import type { Http2Owner, Http2Settings } from "../../../src/http/h2/settings.ts";
import { Http2Stream } from "../../../src/http/h2/stream.ts";
import type { Transport } from "../../../src/net/transport.ts";
import type { Dice } from "../dice.ts";
import { bodyOf, Violation } from "./model.ts";

const CODES = [0, 2, 7, 8];

/** Checks that events come in the order that `Http2Stream` promises, and the bytes that they bring. */
export class FuzzStream extends Http2Stream {
  readonly #side: EngineSide;
  readonly #dice: Dice;
  #received = 0;
  #sent = 0;
  /** Bytes of the body that is still to be sent; -1 = none was begun. */
  #toSend = -1;
  #waits = false;
  #isPaused = false;
  /** No event may follow. */
  finished = "";
  ended = false;
  /** It may end without an event. */
  mayVanish = false;

  constructor(side: EngineSide, dice: Dice) {
    super();
    this.#side = side;
    this.#dice = dice;
  }

  // ── events ──

  onHeaders(_section: FieldSection, endStream: boolean): void {
    this.#event("onHeaders");
    if (this.#isPaused && !endStream && this.#received > 0 && this.holds) this.#wrong("onHeaders while data is held");
    this.#act();
  }

  onData(buffer: Buffer, from: number, to: number): void {
    this.#event("onData");
    if (this.#isPaused) this.#wrong("onData while paused");
    if (!this.#side.broken && !buffer.subarray(from, to).equals(bodyOf(this.id, this.#received, to - from)))
      this.#wrong("other bytes");
    this.#received += to - from;
    this.#act();
  }

  onEnd(): void {
    this.#event("onEnd");
    if (this.#isPaused) this.#wrong("onEnd while paused");
    this.ended = true;
    this.#act();
  }

  onBatch(): void {
    this.#event("onBatch");
    this.#act();
  }

  onWritable(): void {
    this.#event("onWritable");
    if (!this.#waits) this.#wrong("onWritable that was not asked for");
    this.#waits = false;
    this.#sendMore();
  }

  onReset(_code: number, _message: string): void {
    this.#event("onReset");
    this.finished = "onReset";
  }

  onFault(error: unknown): void {
    if (!(error instanceof IntendedFault)) this.#side.problem ??= error;
    this.finished = "onFault";
  }

  // ── what it does ──

  /** Something random, or nothing. */
  #act(): void {
    const dice = this.#dice;
    if (!this.#side.wild) return;
    if (dice.chance(0.1)) {
      this.hold();
      if (dice.chance(0.3)) this.goOn();
    }
    if (dice.chance(0.1)) this.begin(dice.below(dice.of([10, 1000, 100_000, 400_000])));
    if (dice.chance(0.03)) this.cancel();
    else if (dice.chance(0.02)) throw new IntendedFault("as the test intends");
  }

  hold(): void {
    if (this.finished !== "" || this.ended) return;
    this.#isPaused = true;
    this.pause();
  }

  goOn(): void {
    this.#isPaused = false;
    this.resume();
  }

  cancel(): void {
    if (this.finished !== "") return;
    this.finished = "reset";
    this.reset(this.#dice.of(CODES));
  }

  /** Not in an event. */
  beginOrCancel(): void {
    const choice = this.#dice.below(10);
    if (choice < 3) this.cancel();
    else if (choice < 5) this.#cancelAfterEnd();
    else this.begin(this.#dice.below(this.#dice.of([10, 1000, 100_000])));
  }

  #cancelAfterEnd(): void {
    this.mayVanish = true;
    this.resetAfterEnd(this.#dice.of(CODES));
  }

  /** Sends a head, where the peer has the first word, and a body of so many bytes. */
  begin(bytes: number): void {
    if (this.#toSend >= 0 || this.finished !== "") return;
    this.#toSend = bytes;
    if (this.#side.role === "server") {
      if (this.#dice.chance(0.2)) this.sendHeaders([":status", "103"], [], false);
      this.sendHeaders([":status", "200"], ["x-bytes", String(bytes)], bytes === 0);
    }
    this.#sendMore();
  }

  /** A response on a stream that has none yet. */
  finish(): void {
    this.begin(this.#dice.below(2000));
  }

  #sendMore(): void {
    while (!this.localEnded && this.finished === "") {
      const length = Math.min(this.#toSend - this.#sent, 1 + this.#dice.below(this.#dice.of([10, 5000, 60_000])));
      const more = length === 0 || this.sendData(bodyOf(this.id, this.#sent, length), 0, length);
      this.#sent += length;
      this.#waits = !more;
      if (this.#sent === this.#toSend) {
        this.sendEnd(this.#dice.chance(0.3) ? ["x-sum", "1"] : []);
        return;
      }
      if (!more) return;
    }
  }

  #event(name: string): void {
    if (this.finished !== "") this.#wrong(`${name} after ${this.finished}`);
    if (this.ended && name !== "onReset" && name !== "onWritable") this.#wrong(`${name} after onEnd`);
  }

  #wrong(what: string): void {
    this.#side.problem ??= new Violation(`stream ${this.id}: ${what}`);
  }
}

class IntendedFault extends Error {}

/** Owner of the connection under test. */
export class EngineSide implements Http2Owner {
  readonly role: "server" | "client";
  readonly connection: Http2Connection;
  readonly streams: FuzzStream[] = [];
  readonly #dice: Dice;
  /** Streams do random things. */
  wild = true;
  /** What went wrong first. */
  problem: unknown;
  /** The peer sends what the model does not know of. */
  broken = false;
  closed = 0;
  readonly gone = new Set<Http2Stream>();

  constructor(role: "server" | "client", transport: Transport, settings: Http2Settings, dice: Dice) {
    this.role = role;
    this.#dice = dice;
    this.connection = new Http2Connection(role, transport, settings, this);
  }

  onStream(): FuzzStream | undefined {
    if (this.wild && this.#dice.chance(0.05)) return undefined;
    const stream = new FuzzStream(this, this.#dice);
    this.streams.push(stream);
    return stream;
  }

  /** Client: opens a stream. */
  open(): FuzzStream {
    const stream = new FuzzStream(this, this.#dice);
    this.streams.push(stream);
    const pseudo = [":method", "POST", ":scheme", "http", ":path", "/", ":authority", "a.example"];
    const endStream = this.wild && this.#dice.chance(0.3);
    this.connection.open(stream, pseudo, [], endStream);
    return stream;
  }

  onSettings(): void {}

  onGoAway(): void {}

  onStreamGone(stream: Http2Stream): void {
    if (this.gone.has(stream)) this.problem ??= new Violation(`stream ${stream.id} is gone twice`);
    this.gone.add(stream);
  }

  onConnectionError(): void {}

  onClosed(): void {
    this.closed++;
  }

  onFault(error: unknown): void {
    this.problem ??= error;
  }
}
