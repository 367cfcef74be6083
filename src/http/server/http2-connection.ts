/**
 * One client connection that speaks HTTP/2 (RFC 9113), as its bind sees it. The engine of both roles is h2/connection.ts; this
 * adds what a server decides: which limits it announces, how long it waits for what, and how clients are asked to leave without
 * losing a request. Each stream is a request of its own (http2-stream.ts). serve-http.ts makes one for each connection.
 */
import { frugal } from "../../net/frugality.ts";
import type { Transport } from "../../net/transport.ts";
import { Http2Connection } from "../h2/connection.ts";
import { ENHANCE_YOUR_CALM, errorName } from "../h2/frames.ts";
import { type Http2Owner, type Http2Settings, LARGEST_WINDOW } from "../h2/settings.ts";
import type { Http2Stream } from "../h2/stream.ts";
import type { ConnectionLimits, HttpConnection, HttpHost, NetworkMetadata, StreamAcceptor } from "../stream.ts";
import { ClientPeer } from "./client-peer.ts";
import { type RequestConnection, RequestStream } from "./http2-stream.ts";
import { Deadline } from "./pace.ts";

/** Bytes of a stream that may come before they are taken, and that are held then; of a connection four times as many. */
const WINDOW = 256 * 1024;
/** The same for connections that are opened while the thread is frugal. */
const FRUGAL_WINDOW = 64 * 1024;
/** What every peer takes (RFC 9113 6.5.2). */
const FRAME_SIZE = 16 * 1024;
const CONCURRENT_STREAMS = 100;
const KEEPALIVE_TIMEOUT_MS = 20_000;
/** Milliseconds until the last GOAWAY, for clients that do not answer a PING: a drain waits for them. */
const LEAVE_MS = 2000;
/** Clients divide a Cookie field into crumbs (RFC 9113 8.2.3), which the limit on fields counts as one; pseudo-header fields too. */
const FURTHER_FIELDS = 256;

/** What is announced to clients. */
function settingsOf({ http2 = {}, maxHeadSize, maxHeaders }: ConnectionLimits): Http2Settings {
  const { windowSize, connectionWindowSize } = http2;
  const window = frugal ? FRUGAL_WINDOW : WINDOW;
  const streamWindow = windowSize ?? window;
  return {
    streamWindow,
    // What is configured is a limit.
    largestWindow: windowSize === undefined && connectionWindowSize === undefined ? LARGEST_WINDOW : streamWindow,
    connectionWindow: connectionWindowSize ?? 4 * window,
    maxFrameSize: http2.frameSize ?? FRAME_SIZE,
    maxHeaderListSize: http2.maxHeaderSize ?? maxHeadSize,
    maxFields: maxHeaders + FURTHER_FIELDS,
    maxStreams: http2.maxConcurrentStreams ?? CONCURRENT_STREAMS,
    connectProtocol: true,
  };
}

/**
 * `no`: stays. `asked`: was sent the first GOAWAY; requests on their way are served. `last`: was sent the last one a round trip
 * later, so no request can cross it, and the connection closes with its last stream.
 */
type Leaving = "no" | "asked" | "last";

export class Http2ServerConnection extends ClientPeer implements HttpConnection, Http2Owner, RequestConnection {
  readonly acceptor: StreamAcceptor;
  readonly peer = this;
  readonly #host: HttpHost;
  readonly #core: Http2Connection;
  readonly #deadline = new Deadline();
  #leaving: Leaving = "no";
  /** `performance.now()` ms at which the last GOAWAY goes out even without an answer to the PING. */
  #leaveBy = 0;
  /** What a read has brought is being handled: whatever ends in it, more may follow. */
  #reading = false;
  /** Streams that began to read their bodies in it. */
  readonly #batched: RequestStream[] = [];
  /** Reads of the core and `performance.now()` ms when the last of them was noticed. */
  #heard = 0;
  #heardAt = 0;
  /** A PING of ours has not been answered. */
  #pinged = false;

  /** `metadata`: what the network authorization has returned about the connection. */
  constructor(transport: Transport, host: HttpHost, acceptor: StreamAcceptor, metadata?: NetworkMetadata) {
    super(transport, metadata);
    this.#host = host;
    this.acceptor = acceptor;
    this.#core = new Http2Connection("server", transport, settingsOf(host.frontend), this);
    this.#deadline.after(host.frontend.idleTimeout);
  }

  get frontend(): ConnectionLimits {
    return this.#host.frontend;
  }

  get activity(): { readonly state: string; readonly ageMs: number; readonly exchanges?: readonly object[] } {
    const core = this.#core;
    const exchanges: object[] = [];
    for (const stream of core.streams) {
      const { activity } = stream as RequestStream;
      if (activity !== undefined) exchanges.push(activity);
    }
    let state = core.streamCount > 0 ? "open" : "idle";
    if (core.ended) state = "linger";
    else if (this.#leaving !== "no") state = "leaving";
    return { state, ageMs: this.#deadline.ageMs, ...(exchanges.length > 0 && { exchanges }) };
  }

  // ── from the transport ──

  onData(buffer: Buffer, length: number): void {
    this.#reading = true;
    this.#core.onData(buffer, length);
    this.#reading = false;
    if (this.#batched.length > 0) for (const stream of this.#batched.splice(0)) stream.endBatch();
    this.#closeIfDone();
  }

  onEnd(): void {
    this.#core.onEnd();
  }

  onDrain(): void {
    this.#core.onDrain();
  }

  onClose(error: Error | undefined): void {
    this.#core.onClose(error);
  }

  /** Of the transport or of the engine, which has ended the connection then. */
  onFault(error: unknown): void {
    this.#host.onFault(error);
    this.#core.destroy("a defect of the gateway");
  }

  // ── from the engine ──

  onStream(): Http2Stream {
    // A connection that came while clients were being asked to leave gets one response first.
    if (this.#host.draining) this.askToReconnect();
    return new RequestStream(this);
  }

  onSettings(): void {}

  onGoAway(): void {
    // The client opens no more streams; those that are open end, and then it closes.
  }

  onStreamGone(): void {
    if (this.#core.streamCount > 0) return;
    this.#deadline.restart();
    this.#closeIfDone();
  }

  /** The client broke the protocol, or did something too often. */
  onConnectionError(code: number, message: string): void {
    this.acceptor.refused(this, "TG_INVALID_REQUEST", `${errorName(code)}: ${message}`, undefined);
  }

  onClosed(): void {
    this.#host.onConnectionClose(this);
  }

  // ── from the streams ──

  batch(stream: RequestStream): void {
    if (this.#reading) this.#batched.push(stream);
    else stream.endBatch();
  }

  onStreamFault(error: unknown): void {
    this.#host.onFault(error);
  }

  // ── deadlines ──

  sweep(now: number): void {
    const core = this.#core;
    const { idleTimeout, headerReadTimeout, maxConnectionDuration } = this.#host.frontend;
    core.sweep(now);
    if (core.ended) return;
    // From its first byte on: a head that trickles in ("slowloris", CVE-2024-27983) must not hold the connection.
    if (core.partialSince > 0 && now - core.partialSince > headerReadTimeout) {
      core.fail(ENHANCE_YOUR_CALM, "a frame or field block did not arrive in time");
      return;
    }
    for (const stream of core.streams) (stream as RequestStream).sweep(now);
    if (this.#deadline.olderThan(now, maxConnectionDuration)) this.askToReconnect();
    if (this.#leaving === "asked" && now >= this.#leaveBy) this.#leaveNow();
    this.#keepAlive(now);
    this.#deadline.renew(now, idleTimeout, true);
    if (this.#host.closesIdle || this.#deadline.passed(now)) this.closeIfIdle();
  }

  /** A client that is gone without a FIN would hold its streams for as long as their backends send nothing. */
  #keepAlive(now: number): void {
    const { keepaliveInterval = 0, keepaliveTimeout = KEEPALIVE_TIMEOUT_MS } = this.#host.frontend.http2 ?? {};
    const { heard } = this.#core;
    if (heard !== this.#heard || this.#heardAt === 0) {
      this.#heard = heard;
      this.#heardAt = now;
    } else if (keepaliveInterval > 0 && !this.#pinged && now - this.#heardAt >= keepaliveInterval) {
      this.#pinged = true;
      this.#core.ping(() => {
        this.#pinged = false;
      }, keepaliveTimeout);
    }
  }

  // ── the end ──

  /** An idle client may be about to send a request: it is asked to leave first, so that the request is served or not sent. */
  closeIfIdle(): void {
    const core = this.#core;
    if (core.streamCount > 0 || core.hasWaiting) return;
    if (this.#leaving === "last") core.end();
    else this.askToReconnect();
  }

  /** The client has asked for all that it may: the connection ends with its last stream. */
  #closeIfDone(): void {
    if (!this.#reading && (this.#leaving === "last" || this.#host.closesIdle)) this.closeIfIdle();
  }

  /**
   * In two steps (RFC 9113 6.8): the client learns that it should open no more streams here, and those that it opens before it
   * has learned it are served.
   */
  askToReconnect(): void {
    if (this.#leaving !== "no") return;
    this.#leaving = "asked";
    this.#leaveBy = performance.now() + LEAVE_MS;
    this.#core.goAway(false);
    // A client that reads a large response slowly may answer late, which is no reason to lose it.
    this.#core.ping(() => this.#leaveNow(), 0);
  }

  #leaveNow(): void {
    if (this.#leaving !== "asked") return;
    this.#leaving = "last";
    this.#core.goAway(true);
    this.#closeIfDone();
  }

  terminate(reason: string): void {
    this.#core.destroy(`${reason} before the request was complete`);
  }
}
