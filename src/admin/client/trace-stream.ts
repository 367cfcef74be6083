import type { IncomingMessage } from "node:http";
import { readError } from "./client-request.ts";
import { type TraceText, TraceTextParser } from "./sse.ts";

/** A running trace, or requests that someone follows: the JSON text of each event as it arrives, until the stream ends. Read it once. */
export class TraceStream implements AsyncIterable<TraceText> {
  /** Settles when the gateway waits for a request to trace, or has failed to. Send the request to trace only after this. */
  readonly opened: Promise<void>;
  readonly #response: Promise<IncomingMessage>;
  readonly #signal: AbortSignal | undefined;
  readonly #stop = new AbortController();
  readonly #parser = new TraceTextParser();

  /** @param open opens the stream; the signal it gets also stops it */
  constructor(open: (signal: AbortSignal) => Promise<IncomingMessage>, signal?: AbortSignal) {
    this.#signal = signal;
    this.#response = open(signal === undefined ? this.#stop.signal : AbortSignal.any([signal, this.#stop.signal]));
    this.opened = this.#response.then(() => undefined);
    // The iteration throws the same error, so awaiting `opened` is optional.
    this.opened.catch(() => undefined);
  }

  /** With which a stream of followed requests can be resumed, behind the last event that the iteration has returned. */
  get lastEventId(): string | undefined {
    return this.#parser.lastEventId;
  }

  /** Stops the trace; the iteration ends. */
  close(): void {
    this.#stop.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TraceText> {
    const parser = this.#parser;
    try {
      const response = await this.#response;
      response.setEncoding("utf8");
      for await (const chunk of response) yield* parser.push(String(chunk));
      yield* parser.end();
    } catch (error) {
      if (!this.#stop.signal.aborted) throw readError(error, this.#signal);
    } finally {
      this.close();
    }
  }
}
