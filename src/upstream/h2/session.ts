import type { ClientHttp2Session } from "node:http2";
import type { Duplex } from "node:stream";
import { nodeHttp2 } from "../../base/lazy-node.ts";
import type { ConnectTimes } from "../connect-attempt.ts";
import type { UpstreamEvents } from "../upstream.ts";
import { NO_ERROR, resetName, type StreamSession, UpstreamStream } from "./stream.ts";

/** Streams at once on one connection, however many the server would take: beyond that another connection is opened. */
const MAX_STREAMS = 100;
/** Streams of one connection in all: their numbers end at 2^31 (RFC 9113 5.1.1). */
const MAX_STREAM_ID = 2 ** 31 - 1 - 2 * MAX_STREAMS;
/** Bytes that the server may send before they are taken: on each stream, and on all of them together. */
const STREAM_WINDOW = 64 * 1024;
const CONNECTION_WINDOW = 1024 * 1024;
/** Limits on the head of a response; those of HTTP/1.1. */
const MAX_HEAD = 64 * 1024;
const MAX_FIELDS = 200;
/** MiB that `node:http2` may hold for one connection: of requests whose bytes the server does not take. */
const MAX_MEMORY = 64;
const OPTIONS = {
  maxSessionMemory: MAX_MEMORY,
  maxHeaderListPairs: MAX_FIELDS,
  // What HTTP/1.1 lets pass goes on as it is.
  strictSingleValueFields: false,
  settings: { enablePush: false, initialWindowSize: STREAM_WINDOW, maxHeaderListSize: MAX_HEAD },
};

/** The pool of a session. */
export interface SessionOwner {
  /** The server has said what its limits are, which is the first that it says. */
  onSettled(session: UpstreamSession): void;
  /** A stream has ended. */
  onRoom(): void;
  onIdle(session: UpstreamSession): void;
  /** Takes no more requests; may be called more than once. */
  onRetired(session: UpstreamSession): void;
  /** The connection is gone; the last call. */
  onGone(session: UpstreamSession): void;
}

/**
 * One connection that speaks HTTP/2 with an upstream, and its streams. After a GOAWAY, or when its stream ids run out, it takes
 * no new requests and ends with its last stream; requests that the server has not processed are replayed by their calls.
 */
export class UpstreamSession implements StreamSession {
  readonly #session: ClientHttp2Session;
  readonly #owner: SessionOwner;
  readonly #batch: UpstreamStream[] = [];
  /** Streams that are open. */
  streams = 0;
  /** Streams that may be open at once. Until the server has said how many it takes one is sent, which all servers do. */
  limit = 1;
  settled = false;
  /** Exchanges that are over. */
  served = 0;
  /** How its connection was made. */
  readonly times: ConnectTimes;
  /** Address and port of the peer, for loop detection. */
  readonly target: string;
  /** Counts what has come from the server. */
  heard = 0;
  /** `performance.now()` ms. */
  readonly openedAt = performance.now();
  /** `performance.now()` ms since when it has had no stream. */
  idleSince = this.openedAt;
  #failure = "the upstream closed the connection";
  #retired = false;
  /** The last stream that the server has looked at, after a GOAWAY. */
  #lastStream = Number.POSITIVE_INFINITY;

  /** `stream`: a connection to `target`, after the handshake of TLS. */
  constructor(stream: Duplex, owner: SessionOwner, times: ConnectTimes, target: string) {
    this.times = times;
    this.target = target;
    // A server that sends FIN cannot be asked for anything more, nor does it send more.
    stream.allowHalfOpen = false;
    this.#owner = owner;
    this.#session = nodeHttp2().connect("http://localhost", { ...OPTIONS, createConnection: () => stream });
    const session = this.#session;
    session.once("connect", () => session.setLocalWindowSize(CONNECTION_WINDOW));
    session.on("remoteSettings", ({ maxConcurrentStreams = MAX_STREAMS }) => this.#settle(maxConcurrentStreams));
    session.on("goaway", (code, lastStream) => {
      this.#lastStream = lastStream;
      if (code !== NO_ERROR) this.#failure = `the upstream ended the connection: ${resetName(code)}`;
      this.#retire();
    });
    session.on("error", (error) => {
      // That of a GOAWAY says less than the GOAWAY.
      if (this.#lastStream === Number.POSITIVE_INFINITY) this.#failure = error.message;
    });
    session.on("close", () => {
      this.#retired = true;
      owner.onGone(this);
    });
  }

  /** Why the connection ended; undefined while it lives. */
  get failure(): string | undefined {
    return this.#session.destroyed ? this.#failure : undefined;
  }

  /** Takes one more request now. */
  get room(): boolean {
    return !this.#retired && this.streams < this.limit;
  }

  /** Starts an exchange; there has to be room. `start` has the pseudo-header fields. */
  send(
    start: readonly string[],
    headers: readonly string[],
    method: string,
    length: number,
    events: UpstreamEvents,
  ): UpstreamStream {
    const stream = this.#session.request([...start, ...headers], {
      endStream: length === 0,
      // Also where none can follow: else the library would send END_STREAM before the RST_STREAM of an abandoned request,
      // and a server that does not compare lengths would take a part of an upload for the whole.
      waitForTrailers: length !== 0,
    });
    this.streams++;
    if ((stream.id ?? 0) > MAX_STREAM_ID) this.#retire();
    return new UpstreamStream(stream, this, method, length === 0, events);
  }

  /** Whether the server has said that it did not look at a stream; `id` is undefined when it was never sent. */
  passedOver(id: number | undefined): boolean {
    return id === undefined || id > this.#lastStream;
  }

  /** From now on no requests; the connection ends with its last stream. */
  close(): void {
    this.#retire();
    // Without streams there is nothing to wait for, least of all for a server that is not there any more.
    if (this.streams === 0) this.#session.destroy();
    else this.#session.close();
  }

  /** Ends the connection and its streams now. */
  abort(reason: string): void {
    this.#failure = reason;
    this.#retire();
    this.#session.destroy();
  }

  // ── from the streams ──

  /** `stream` has passed something to its caller; its `endBatch` follows at the end of this turn of the event loop. */
  batch(stream: UpstreamStream): void {
    if (this.#batch.push(stream) > 1) return;
    setImmediate(() => {
      for (const each of this.#batch.splice(0)) each.endBatch();
    });
  }

  onStreamClosed(): void {
    this.streams--;
    this.served++;
    if (this.streams === 0) {
      this.idleSince = performance.now();
      if (this.#retired) this.#session.destroy();
      else this.#owner.onIdle(this);
    }
    this.#owner.onRoom();
  }

  #settle(maxStreams: number): void {
    this.limit = Math.min(maxStreams, MAX_STREAMS);
    if (this.settled) this.#owner.onRoom();
    else {
      this.settled = true;
      this.#owner.onSettled(this);
    }
  }

  #retire(): void {
    if (this.#retired) return;
    this.#retired = true;
    this.#owner.onRetired(this);
  }
}
