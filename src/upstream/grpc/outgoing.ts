import type { UpstreamStream } from "../h2/stream.ts";
import { frame } from "./messages.ts";

/** `open`: the caller may write. `blocked`: it waits for room. `ended`: it has no more messages, so END_STREAM follows the last one. */
type Writing = "open" | "blocked" | "ended";

/** The messages of the caller on their way to the service. There may be no stream yet, and a replay gets another one. */
export class OutgoingMessages {
  readonly #replayBytes: number;
  #writing: Writing = "open";
  #stream: UpstreamStream | undefined;
  /** Everything written so far, for a call that has no stream yet or may be replayed; undefined: it cannot be. */
  #kept: Buffer[] | undefined = [];
  #keptBytes = 0;

  /** Up to `replayBytes` are kept for a replay. */
  constructor(replayBytes: number) {
    this.#replayBytes = replayBytes;
  }

  /** Everything that was written can be sent again. */
  get repeatable(): boolean {
    return this.#kept !== undefined;
  }

  get ended(): boolean {
    return this.#writing === "ended";
  }

  /** False = the caller has to wait until there is room. Without a stream, messages wait in the caller, not here. */
  write(message: Uint8Array): boolean {
    const bytes = frame(message);
    this.#kept?.push(bytes);
    this.#keptBytes += bytes.length;
    const sent = this.#stream?.sendBody(bytes, 0, bytes.length) ?? false;
    if (this.#stream !== undefined) this.#limitKept();
    this.#writing = sent ? "open" : "blocked";
    return sent;
  }

  end(): void {
    this.#writing = "ended";
    this.#stream?.sendEnd([]);
  }

  /** Sends what waited for a stream, or what a replay has to repeat. False = the stream takes no more for now. */
  sendOn(stream: UpstreamStream): boolean {
    this.#stream = stream;
    let takesMore = true;
    for (const bytes of this.#kept ?? []) takesMore = stream.sendBody(bytes, 0, bytes.length);
    this.#limitKept();
    if (this.ended) stream.sendEnd([]);
    return takesMore;
  }

  /** The stream has failed. Returns it; what is written until there is another one is kept. */
  detach(): UpstreamStream | undefined {
    const stream = this.#stream;
    this.#stream = undefined;
    return stream;
  }

  /** There is room. Returns whether the caller was waiting for it. */
  unblock(): boolean {
    if (this.#writing !== "blocked") return false;
    this.#writing = "open";
    return true;
  }

  /** The service has responded: there is no replay. */
  forget(): void {
    this.#kept = undefined;
  }

  #limitKept(): void {
    if (this.#keptBytes > this.#replayBytes) this.#kept = undefined;
  }
}
