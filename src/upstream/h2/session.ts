import { Http2Connection } from "../../http/h2/connection.ts";
import { errorName, HTTP_1_1_REQUIRED, MAX_STREAM_ID, NO_ERROR } from "../../http/h2/frames.ts";
import { type Http2Owner, type Http2Settings, LARGEST_WINDOW } from "../../http/h2/settings.ts";
import { frugal } from "../../net/frugality.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import type { ConnectTimes } from "../connect-attempt.ts";
import { describe } from "../connection.ts";
import type { UpstreamEvents } from "../upstream.ts";
import { type StreamSession, UpstreamStream } from "./stream.ts";

/** Streams at once on one connection, however many the server would take: beyond that another connection is opened. */
const MAX_STREAMS = 100;
/** Bytes that the server may send on a stream before they are taken: what a client that is slow makes the gateway hold. */
const STREAM_WINDOW = 256 * 1024;
/** The same for connections that are opened while the thread is frugal. */
const FRUGAL_WINDOW = 64 * 1024;
const SETTINGS = {
  largestWindow: LARGEST_WINDOW,
  maxFrameSize: 16 * 1024,
  // Limits on the head of a response: those of HTTP/1.1.
  maxHeaderListSize: 64 * 1024,
  maxFields: 200,
  maxStreams: 0,
  connectProtocol: false,
} as const;

function settings(): Http2Settings {
  const streamWindow = frugal ? FRUGAL_WINDOW : STREAM_WINDOW;
  // The streams of slow clients together must not keep the others from receiving.
  return { ...SETTINGS, streamWindow, connectionWindow: MAX_STREAMS * streamWindow };
}

/**
 * Milliseconds without a sign of the server, while it has streams, after which it is asked for one. Servers of gRPC end
 * connections that ask more often than every five minutes (gRFC A8).
 */
const SILENCE_MS = 301_000;

/** The head of a request is larger than the server takes. Nothing was sent. */
export class HeadTooLarge extends Error {}

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
  /**
   * The server has answered in HTTP/1.1, so it did nothing with what was sent; its streams fail next. Returns whether they are to be
   * made again as HTTP/1.1.
   */
  onHttp1?(session: UpstreamSession): boolean;
  /** A defect of the gateway has ended the connection. */
  onFault(error: unknown): void;
}

/**
 * One connection that speaks HTTP/2 with an upstream, and its streams. After a GOAWAY, or when its stream ids run out, it takes
 * no new requests and ends with its last stream; requests that the server has not processed are replayed by their calls.
 */
export class UpstreamSession implements StreamSession, Http2Owner {
  readonly #connection: Http2Connection;
  readonly #owner: SessionOwner;
  /** Streams that may be open at once. Until the server has said how many it takes one is sent, which all servers do. */
  limit = 1;
  /** The server has said what its limits are. */
  settled = false;
  /** The server has answered in HTTP/1.1, and its requests are made again as that. */
  speaksHttp1 = false;
  /** Exchanges that are over. */
  served = 0;
  /** How its connection was made. */
  readonly times: ConnectTimes;
  /** Address and port of the peer, for loop detection. */
  readonly target: string;
  /** Counts what has come from the server on its streams. */
  heard = 0;
  /** `performance.now()` ms. */
  readonly openedAt = performance.now();
  /** `performance.now()` ms since when it has had no stream. */
  idleSince = this.openedAt;
  #failure: string | undefined;
  #retired = false;
  /** `connection.heard`, and `performance.now()` ms at which it was first seen to be that. */
  #heardAtSweep = 0;
  #silentSince = this.openedAt;

  constructor(transport: Transport, owner: SessionOwner, times: ConnectTimes) {
    this.times = times;
    this.target = `${transport.remoteAddress}:${transport.remotePort}`;
    this.#owner = owner;
    transport.outliveFailedWrites();
    this.#connection = new Http2Connection("client", transport, settings(), this);
  }

  /** Gets the events of the transport. */
  get handler(): TransportHandler {
    return this.#connection;
  }

  /** Streams that are open. */
  get streams(): number {
    return this.#connection.streamCount;
  }

  /** The server takes extended CONNECT (RFC 8441 3); known once it is `settled`. */
  get connectProtocol(): boolean {
    return this.#connection.peer.connectProtocol;
  }

  /** Why the connection has ended; undefined while it lives. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Takes one more request now. */
  get room(): boolean {
    return !this.#retired && this.#connection.streamCount < this.limit && !this.#connection.ended;
  }

  /**
   * Starts an exchange; there has to be room. `start` has the pseudo-header fields, `length` is that of the request's body: bytes,
   * UNKNOWN_LENGTH, or TUNNEL. Throws HeadTooLarge.
   */
  send(
    start: readonly string[],
    headers: readonly string[],
    method: string,
    length: number,
    events: UpstreamEvents,
  ): UpstreamStream {
    // Servers of Go and Java end the connection for it, and with it the requests of other clients.
    if (!this.takes(start, headers)) {
      const limit = this.#connection.peer.maxHeaderListSize;
      throw new HeadTooLarge(`the upstream takes ${limit} bytes of header fields at most`);
    }
    const stream = new UpstreamStream(this, method, length === 0, events);
    if (!this.#connection.open(stream, start, headers, length === 0))
      throw new TypeError("a session without room cannot send a request");
    // The next one would be beyond the last id (RFC 9113 5.1.1).
    if (stream.id + 2 > MAX_STREAM_ID) this.#retire();
    return stream;
  }

  /** From now on no requests; the connection ends with its last stream. */
  close(): void {
    this.#retire();
    if (this.streams === 0) this.#leave();
  }

  /** Ends the connection and its streams now. */
  abort(reason: string): void {
    this.#failure ??= reason;
    this.#retire();
    this.#connection.destroy(reason);
  }

  /** Asks for a sign of the server; `onAck` when it comes. Without one the connection ends, some seconds later. */
  ping(onAck: () => void): void {
    this.#connection.ping(onAck);
  }

  /** Called once a second, until the connection is gone. */
  sweep(now: number): void {
    const connection = this.#connection;
    connection.sweep(now);
    if (connection.heard !== this.#heardAtSweep || connection.streamCount === 0) {
      this.#heardAtSweep = connection.heard;
      this.#silentSince = now;
    } else if (now - this.#silentSince > SILENCE_MS) {
      this.#silentSince = now;
      connection.ping(() => {});
    }
  }

  // ── from the streams ──

  takes(pseudo: readonly string[], fields: readonly string[]): boolean {
    return this.#connection.peer.takes(pseudo, fields);
  }

  /** A request is given up: if nothing has come since it was sent, the next ones must not wait for a dead server as well. */
  distrust(heardBefore: number): void {
    if (this.settled && this.heard === heardBefore) this.#retire();
  }

  // ── from the connection ──

  onSettings(): void {
    this.limit = Math.min(this.#connection.peer.maxStreams, MAX_STREAMS);
    if (this.settled) this.#owner.onRoom();
    else {
      this.settled = true;
      this.#owner.onSettled(this);
    }
  }

  onGoAway(_lastStream: number, code: number): void {
    if (code === NO_ERROR) this.close();
    else this.abort(`the upstream ended the connection: ${errorName(code)}`);
  }

  onStreamGone(): void {
    this.served++;
    if (this.streams === 0) {
      this.idleSince = performance.now();
      if (this.#retired) this.#leave();
      else this.#owner.onIdle(this);
    }
    this.#owner.onRoom();
  }

  onConnectionError(code: number, message: string): void {
    this.#failure ??= message;
    this.#retire();
    if (code !== HTTP_1_1_REQUIRED) return;
    // The streams look at it only afterwards.
    this.speaksHttp1 = this.#owner.onHttp1?.(this) === true;
  }

  onClosed(error: Error | undefined): void {
    this.#retired = true;
    this.#failure ??= error === undefined ? "the upstream closed the connection" : describe(error);
    this.#owner.onGone(this);
  }

  onFault(error: unknown): void {
    this.#owner.onFault(error);
  }

  /** Nothing is left to wait for, least of all for a server that may not be there any more. */
  #leave(): void {
    this.#connection.goAway(true);
    this.#connection.destroy("the connection is not needed any more");
  }

  #retire(): void {
    if (this.#retired) return;
    this.#retired = true;
    this.#owner.onRetired(this);
  }
}
