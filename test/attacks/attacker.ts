import { type Socket, connect as socketConnect } from "node:net";
import { ACK, errorName, FRAME_HEADER, GOAWAY, PREFACE, SETTINGS } from "../../src/http/h2/frames.ts";
import { type Attack, frame } from "./attacks.ts";

/** Rounds that are sent in one write. */
const BATCH = 32;

const GREETING = Buffer.concat([PREFACE, frame(SETTINGS, 0, 0), frame(SETTINGS, ACK, 0)]);

/** What became of one connection. */
export interface Outcome {
  /** Code and text of the GOAWAY; "" = the server sent none. */
  readonly goAway: string;
  /** How often the attack's `round` was sent; the server may have read fewer. */
  readonly rounds: number;
  /** The attacker's time ran out before the connection ended. */
  readonly timedOut: boolean;
}

/** Attacks the server on `port` over one connection, until it ends or the time is over. */
export async function attackOnce(port: number, attack: Attack, milliseconds: number): Promise<Outcome> {
  const socket = socketConnect({ port, host: "127.0.0.1", noDelay: true });
  const incoming = new Incoming(socket);
  let open = true;
  let wake = () => {};
  const stop = (): void => {
    open = false;
    wake();
  };
  socket.on("close", stop).on("error", stop).on("end", stop);
  socket.on("drain", () => wake());
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    stop();
  }, milliseconds);
  if (attack.http1 === undefined) socket.write(GREETING);
  if (attack.opening !== undefined) socket.write(attack.opening);
  if (attack.deaf) socket.pause();
  let rounds = 0;
  while (open && attack.round !== undefined) {
    const batch: Buffer[] = [];
    for (let i = 0; i < BATCH; i++) batch.push(attack.round(rounds++));
    // Even if the buffer is not full: incoming frames are read in the next turn.
    if (socket.write(Buffer.concat(batch))) await new Promise((resolve) => setImmediate(resolve));
    else
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (!open) resolve();
      });
  }
  if (attack.round === undefined && open)
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  clearTimeout(timer);
  socket.destroy();
  return { goAway: incoming.goAway, rounds, timedOut };
}

/** Reads from the server's frames why the connection ends. */
class Incoming {
  goAway = "";
  #head: Buffer = Buffer.alloc(0);
  /** Remaining bytes of a frame of any other type. */
  #skip = 0;

  constructor(socket: Socket) {
    socket.on("data", (bytes: Buffer) => this.#read(bytes));
  }

  #read(bytes: Buffer): void {
    let rest = this.#head.length > 0 ? Buffer.concat([this.#head, bytes]) : bytes;
    for (;;) {
      const skipped = Math.min(this.#skip, rest.length);
      this.#skip -= skipped;
      rest = rest.subarray(skipped);
      if (rest.length < FRAME_HEADER) break;
      const length = rest.readUIntBE(0, 3);
      if (rest[3] !== GOAWAY) {
        this.#skip = FRAME_HEADER + length;
        continue;
      }
      if (rest.length < FRAME_HEADER + length) break;
      const payload = rest.subarray(FRAME_HEADER, FRAME_HEADER + length);
      this.goAway = `${errorName(payload.readUInt32BE(4))}: ${payload.toString("latin1", 8)}`;
      this.#skip = FRAME_HEADER + length;
    }
    this.#head = Buffer.from(rest);
  }
}
