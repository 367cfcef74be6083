import { Http2Connection } from "../../http/h2/connection.ts";
import { errorName, HTTP_1_1_REQUIRED, MAX_STREAM_ID, NO_ERROR } from "../../http/h2/frames.ts";
import { type Http2Owner, type Http2Settings, LARGEST_WINDOW } from "../../http/h2/settings.ts";
import { type PeerAddress, peerAddress } from "../../net/addresses.ts";
import { frugal } from "../../net/frugality.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import type { ConnectTimes } from "../connections/connect-attempt.ts";
import { describe } from "../connections/connection.ts";
import type { UpstreamEvents } from "../connections/upstream.ts";
import { type StreamSession, UpstreamStream } from "./stream.ts";

/** Limit of streams on one connection, even if the server allows more: beyond it, another connection is opened. */
const MAX_STREAMS = 100;
/** Bytes that the server may send on a stream before any is taken: what the gateway holds for a slow client. */
const STREAM_WINDOW = 256 * 1024;
/** The same while the thread is frugal. */
const FRUGAL_WINDOW = 32 * 1024;
const SETTINGS = {
  largestWindow: LARGEST_WINDOW,
  maxFrameSize: 16 * 1024,
  // The same limits as for the head of an HTTP/1.1 response.
  maxHeaderListSize: 64 * 1024,
  maxFields: 200,
  maxStreams: 0,
  connectProtocol: false,
} as const;

function settings(): Http2Settings {
  const streamWindow = frugal ? FRUGAL_WINDOW : STREAM_WINDOW;
  // Streams of slow clients, however many, must not use up the window of the others.
  return { ...SETTINGS, streamWindow, frugalWindow: FRUGAL_WINDOW, connectionWindow: MAX_STREAMS * streamWindow };
}

/**
 * Milliseconds of silence on a connection with streams after which the server is sent a PING. gRPC servers close connections that
 * send PINGs more often than every five minutes (gRFC A8).
 */
const SILENCE_MS = 301_000;

/** The head of a request is larger than the server accepts. Nothing was sent. */
export class HeadTooLarge extends Error {}

/** The pool of a session. */
export interface SessionOwner {
  /** The server has announced its limits, in its first frame. */
  onSettled(session: UpstreamSession): void;
  /** A stream has ended. */
  onRoom(): void;
  onIdle(session: UpstreamSession): void;
  /** The session accepts no more requests. May be called more than once. */
  onRetired(session: UpstreamSession): void;
  /** The connection is gone; the last call. */
  onGone(session: UpstreamSession): void;
  /** A defect of the gateway has ended the connection. */
  onFault(error: unknown): void;
}

/**
 * One HTTP/2 connection to an upstream, with its streams. After a GOAWAY, or when its stream ids run out, it accepts no new
 * requests and ends with its last stream; calls replay requests that the server has not processed.
 */
export class UpstreamSession implements StreamSession, Http2Owner {
  readonly #connection: Http2Connection;
  readonly #transport: Transport;
  readonly #owner: SessionOwner;
  /** Streams that may be open at a time: one until the server has announced its limit. */
  limit = 1;
  /** The server has announced its limits. */
  settled = false;
  /** The server has responded in HTTP/1.1. */
  speaksHttp1 = false;
  /** `performance.now()` ms since when the server has allowed no streams; 0 = it allows some. */
  barredSince = 0;
  /** Exchanges that are over. */
  served = 0;
  /** How long each step of opening the connection took. */
  readonly times: ConnectTimes;
  /** It is not known that the server speaks HTTP/2, so nothing is sent before its SETTINGS. */
  readonly isGuess: boolean;
  /** Counts the events that the server has caused on its streams. */
  heard = 0;
  /** `performance.now()` ms. */
  readonly openedAt = performance.now();
  /** `performance.now()` ms since when it has had no stream. */
  idleSince = this.openedAt;
  #failure: string | undefined;
  #retired = false;
  /** `connection.heard` as of the last sweep that saw it change, and the time of that sweep (`performance.now()` ms). */
  #heardAtSweep = 0;
  #silentSince = this.openedAt;

  constructor(transport: Transport, owner: SessionOwner, times: ConnectTimes, isGuess = false) {
    this.times = times;
    this.isGuess = isGuess;
    this.#owner = owner;
    transport.outliveFailedWrites();
    this.#transport = transport;
    this.#connection = new Http2Connection("client", transport, settings(), this);
  }

  /** Receives the events of the transport. */
  get handler(): TransportHandler {
    return this.#connection;
  }

  /** Address and port of the other end; undefined for a socket file. */
  get peer(): PeerAddress | undefined {
    return peerAddress(this.#transport);
  }

  /** Streams that are open. */
  get streams(): number {
    return this.#connection.streamCount;
  }

  /** The server supports extended CONNECT (RFC 8441 3); known once the session is `settled`. */
  get connectProtocol(): boolean {
    return this.#connection.peer.connectProtocol;
  }

  /** Why the connection has ended; undefined while it is open. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** The session accepts another request now. */
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
    // Servers written in Go and Java end the connection over it, and with it the requests of other clients.
    if (!this.takes(start, headers)) {
      const limit = this.#connection.peer.maxHeaderListSize;
      throw new HeadTooLarge(`the upstream accepts at most ${limit} bytes of header fields`);
    }
    const stream = new UpstreamStream(this, method, length === 0, events);
    if (!this.#connection.open(stream, start, headers, length === 0))
      throw new TypeError("a session without room cannot send a request");
    // The next one would be beyond the last id (RFC 9113 5.1.1).
    if (stream.id + 2 > MAX_STREAM_ID) this.#retire();
    return stream;
  }

  /** Accepts no more requests; the connection ends with its last stream. */
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

  /** Sends a PING; `onAck` follows when it is acknowledged. Otherwise the connection ends after some seconds. */
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

  /** A request is abandoned. If the server has been silent since it was sent, further requests must not wait for a dead server. */
  distrust(heardBefore: number): void {
    if (this.settled && this.heard === heardBefore) this.#retire();
  }

  // ── from the connection ──

  onSettings(): void {
    this.limit = Math.min(this.#connection.peer.maxStreams, MAX_STREAMS);
    if (this.limit > 0) this.barredSince = 0;
    else if (this.barredSince === 0) this.barredSince = performance.now();
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
    this.speaksHttp1 = code === HTTP_1_1_REQUIRED;
    this.#retire();
  }

  onClosed(error: Error | undefined): void {
    this.#retired = true;
    this.#failure ??= error === undefined ? "the upstream closed the connection" : describe(error);
    this.#owner.onGone(this);
  }

  onFault(error: unknown): void {
    this.#owner.onFault(error);
  }

  /** Closes at once: nothing is left to wait for, and the server may be gone. */
  #leave(): void {
    this.#connection.goAway(true);
    this.#connection.destroy("the connection is no longer needed");
  }

  #retire(): void {
    if (this.#retired) return;
    this.#retired = true;
    this.#owner.onRetired(this);
  }
}
