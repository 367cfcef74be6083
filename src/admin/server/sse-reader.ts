import type { ServerResponse } from "node:http";
import type { TraceReader } from "../plane/plane.ts";

/** Bytes. While more are buffered for the client, events are not taken, so a stream holds at most this plus what one call writes. */
const MAX_WAITING = 1024 * 1024;
const KEEPALIVE_INTERVAL = 1_000;
/** Milliseconds after which a client that reads nothing is disconnected. */
const STALL_TIMEOUT = 30_000;

/** Writes trace events as server-sent events (WHATWG HTML 9.2) to one client, within a bounded buffer. */
export class SseReader implements TraceReader {
  onDrain: (() => void) | undefined;
  /** Resolves when the stream has ended, here or because the client disconnected. */
  readonly ended: Promise<void>;
  readonly #response: ServerResponse;
  #keepalive: NodeJS.Timeout | undefined;
  #refused = false;
  #done = false;

  constructor(response: ServerResponse) {
    this.#response = response;
    this.ended = new Promise((resolve) => {
      response.once("close", () => {
        clearInterval(this.#keepalive);
        resolve();
      });
    });
    response.on("drain", () => {
      if (!this.#refused) return;
      this.#refused = false;
      this.onDrain?.();
    });
  }

  /** Writes the head and the first comment, which tells the client that the next request will be traced. */
  start(): void {
    if (this.#keepalive !== undefined || this.#over) return;
    this.#response.setTimeout(STALL_TIMEOUT, () => this.#response.destroy());
    this.#response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    this.#response.write(": ready\n\n");
    this.#keepalive = setInterval(() => {
      // Behind buffered events a keepalive is useless, and it would hide a stalled reader from the timeout.
      if (!this.#over && !this.#response.writableNeedDrain) this.#response.write(": keepalive\n\n");
    }, KEEPALIVE_INTERVAL);
    if (this.#done) this.end();
  }

  event(json: string): boolean {
    return this.#write(`data: ${json}\n\n`);
  }

  /** All of these events, or none. An id without an event is what a client that connects again sends, as if it were that of an event. */
  events(events: readonly { readonly json?: string; readonly id: string }[]): boolean {
    // One write for all: each costs more than an event.
    let text = "";
    for (const { json, id } of events) text += json === undefined ? `id: ${id}\n\n` : `id: ${id}\ndata: ${json}\n\n`;
    return this.#write(text);
  }

  #write(text: string): boolean {
    if (this.#over) return false;
    this.start();
    if (this.#response.writableLength > MAX_WAITING) {
      this.#refused = true;
      return false;
    }
    this.#response.write(text);
    return true;
  }

  /** Safe to call again. If called before `start`, the stream ends as soon as it starts. */
  end(): void {
    this.#done = true;
    clearInterval(this.#keepalive);
    if (this.#response.headersSent && !this.#over) this.#response.end();
  }

  get #over(): boolean {
    return this.#response.writableEnded || this.#response.destroyed;
  }
}
