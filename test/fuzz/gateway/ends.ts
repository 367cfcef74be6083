/** Ends of connections that send whatever the dice say; what comes from the gateway is read as far as they need it. */
import type { Socket } from "node:net";
import {
  ACK,
  DATA,
  END_HEADERS,
  END_STREAM,
  FRAME_HEADER,
  HEADERS,
  PADDED,
  PING,
  PREFACE,
  readUint31,
  SETTINGS,
  WINDOW_UPDATE,
} from "../../../src/http/h2/frames.ts";
import { frame, literals, uint32 } from "../../helpers/h2-client.ts";
import type { Dice } from "../dice.ts";

const NOTHING = Buffer.alloc(0);
/** Lengths of bodies, around those of frames, reads and limits. Bytes. */
const SIZES = [0, 1, 5, 100, 1023, 5000, 16_384, 40_000, 300_000];

export function body(dice: Dice): Buffer {
  return Buffer.alloc(dice.of(SIZES), "body");
}

/** A body in chunked coding; sometimes cut off or broken. */
export function chunked(dice: Dice): Buffer {
  const pieces: Buffer[] = [];
  for (let n = dice.below(5); n > 0; n--) {
    const data = body(dice);
    if (data.length > 0) pieces.push(Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from("\r\n"));
  }
  const ends = ["0\r\n\r\n", "0\r\n\r\n", "0\r\n\r\n", "0\r\nx-trailer: 1\r\ngrpc-status: 0\r\n\r\n", "zz\r\n", ""];
  return Buffer.concat([...pieces, Buffer.from(dice.of(ends))]);
}

/** Some of `lines`. */
export function some<T>(dice: Dice, choices: readonly T[], probability: number): T[] {
  return choices.filter(() => dice.chance(probability));
}

/** The end of a connection of HTTP/2, in either role. Acknowledges and gives credit, most of the time. */
export class Http2End {
  readonly #socket: Socket;
  readonly #dice: Dice;
  readonly #onHeaders: (id: number) => void;
  readonly #generous: boolean;
  #received = NOTHING;
  #prefaceLeft: number;

  constructor(socket: Socket, role: "server" | "client", dice: Dice, onHeaders: (id: number) => void) {
    this.#socket = socket;
    this.#dice = dice;
    this.#onHeaders = onHeaders;
    this.#generous = dice.chance(0.8);
    this.#prefaceLeft = role === "server" ? PREFACE.length : 0;
    if (role === "client") socket.write(PREFACE);
    this.send(SETTINGS, 0, 0, this.#settings(role));
    socket.on("data", (bytes: Buffer) => this.#read(bytes));
  }

  send(type: number, flags: number, stream: number, payload: Buffer = NOTHING): void {
    if (this.#socket.writable) this.#socket.write(frame(type, flags, stream, payload));
  }

  headers(stream: number, fields: readonly string[], end: boolean): void {
    this.send(HEADERS, END_HEADERS | (end ? END_STREAM : 0), stream, literals(fields));
  }

  /** DATA in frames of any size, some of them padded. */
  data(stream: number, bytes: Buffer, end: boolean): void {
    const dice = this.#dice;
    let at = 0;
    do {
      const to = Math.min(bytes.length, at + 1 + dice.below(16_000));
      const last = end && to === bytes.length ? END_STREAM : 0;
      const piece = bytes.subarray(at, to);
      if (dice.chance(0.1))
        this.send(DATA, PADDED | last, stream, Buffer.concat([Buffer.of(3), piece, Buffer.alloc(3)]));
      else this.send(DATA, last, stream, piece);
      at = to;
    } while (at < bytes.length);
  }

  /** A frame of any type on one of `streams`, most probably an error. */
  nonsense(streams: readonly number[]): void {
    const dice = this.#dice;
    this.send(
      dice.below(20),
      dice.below(256),
      dice.of([0, 1, 2, ...streams]),
      Buffer.alloc(dice.of([0, 1, 4, 5, 6, 8, 20])),
    );
  }

  #settings(role: "server" | "client"): Buffer {
    const dice = this.#dice;
    const values: (readonly [id: number, value: number])[] = [
      [1, dice.of([0, 100, 65_536])],
      [4, dice.of([0, 1, 100, 65_535, 2 ** 31 - 1])],
      [6, dice.of([100, 500, 10_000])],
    ];
    if (role === "server") values.push([3, dice.of([0, 1, 2, 50])], [8, 1]);
    const announced = some(dice, values, 0.25).map(([id, value]) => Buffer.concat([Buffer.of(0, id), uint32(value)]));
    return Buffer.concat(announced);
  }

  #read(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    if (this.#prefaceLeft > 0) {
      if (this.#received.length < this.#prefaceLeft) return;
      this.#received = this.#received.subarray(this.#prefaceLeft);
      this.#prefaceLeft = 0;
    }
    while (this.#received.length >= FRAME_HEADER) {
      const end = FRAME_HEADER + this.#received.readUIntBE(0, 3);
      if (this.#received.length < end) return;
      const [type = 0, flags = 0] = this.#received.subarray(3, 5);
      const id = readUint31(this.#received, 5);
      const payload = Buffer.from(this.#received.subarray(FRAME_HEADER, end));
      this.#received = this.#received.subarray(end);
      this.#take(type, flags, id, payload);
    }
  }

  #take(type: number, flags: number, id: number, payload: Buffer): void {
    const dice = this.#dice;
    if (type === SETTINGS && (flags & ACK) === 0) this.send(SETTINGS, ACK, 0);
    else if (type === PING && (flags & ACK) === 0 && dice.chance(0.9)) this.send(PING, ACK, 0, payload);
    else if (type === HEADERS) this.#onHeaders(id);
    else if (type === DATA && payload.length > 0 && this.#generous) {
      this.send(WINDOW_UPDATE, 0, 0, uint32(payload.length));
      if ((flags & END_STREAM) === 0) this.send(WINDOW_UPDATE, 0, id, uint32(payload.length));
    }
  }
}
