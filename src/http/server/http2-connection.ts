/**
 * One client connection that speaks HTTP/2 (RFC 9113), as its bind sees it. The engine of both roles is h2/connection.ts. This class
 * adds what a server decides: the limits that it announces, its deadlines, and how clients are asked to reconnect without losing a
 * request. Each stream is a request (http2-stream.ts). serve-http.ts makes one for each connection.
 */
import type { ErrorCode } from "../../base/errors.ts";
import { frugal } from "../../net/frugality.ts";
import type { Transport } from "../../net/transport.ts";
import { Http2Connection } from "../h2/connection.ts";
import { ENHANCE_YOUR_CALM, errorName } from "../h2/frames.ts";
import { type Http2Owner, type Http2Settings, LARGEST_WINDOW } from "../h2/settings.ts";
import type { Http2Stream } from "../h2/stream.ts";
import { Deadline } from "../pace.ts";
import type { ConnectionLimits, HttpConnection, HttpHost, NetworkMetadata, StreamAcceptor } from "../stream.ts";
import { ClientPeer } from "./client-peer.ts";
import { type RequestConnection, RequestStream } from "./http2-stream.ts";

/** Window of a stream, bytes: what a client may send before any of it is taken. A connection's window is four times as large. */
const WINDOW = 256 * 1024;
/** The same for connections that are opened while the thread is frugal. */
const FRUGAL_WINDOW = 64 * 1024;
/** Every peer accepts this size (RFC 9113 6.5.2). */
const FRAME_SIZE = 16 * 1024;
const CONCURRENT_STREAMS = 100;
const KEEPALIVE_TIMEOUT_MS = 20_000;
/** Milliseconds until the final GOAWAY for clients that do not acknowledge the PING: a drain waits for them. */
const LEAVE_MS = 2000;
/** Room for crumbs of Cookie (RFC 9113 8.2.3), which `maxHeaders` counts as one field, and for pseudo-header fields. */
const FURTHER_FIELDS = 256;

/** Settings of connections that were opened while the thread was not frugal, which share them. */
const commonSettings = new WeakMap<ConnectionLimits, Http2Settings>();

/** What is announced to clients. */
function settingsOf(limits: ConnectionLimits): Http2Settings {
  if (frugal) return makeSettings(limits);
  const common = commonSettings.get(limits) ?? makeSettings(limits);
  commonSettings.set(limits, common);
  return common;
}

function makeSettings({ http2 = {}, maxHeadSize, maxHeaders }: ConnectionLimits): Http2Settings {
  const { windowSize, connectionWindowSize } = http2;
  const window = frugal ? FRUGAL_WINDOW : WINDOW;
  const streamWindow = windowSize ?? window;
  return {
    streamWindow,
    // Not reduced: the connection's window bounds the memory.
    frugalWindow: streamWindow,
    // Configured sizes are limits, so those windows do not grow.
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
 * `asked`: the client was sent the first GOAWAY; requests in progress are served. `last`: it was sent the final one, a round
 * trip later, so no request can cross it, and the connection closes with its last stream.
 */
type Leaving = "no" | "asked" | "last";

export class Http2ServerConnection extends ClientPeer implements HttpConnection, Http2Owner, RequestConnection {
  readonly acceptor: StreamAcceptor;
  readonly peer = this;
  endsWith: ErrorCode = "TG_CLIENT_GONE";
  readonly #host: HttpHost;
  readonly #core: Http2Connection;
  readonly #deadline = new Deadline();
  #leaving: Leaving = "no";
  /** `performance.now()` ms at which the final GOAWAY is sent even if the PING was not acknowledged. */
  #leaveBy = 0;
  /** The bytes of a read are being handled: even if every stream ends, another may follow. */
  #reading = false;
  /** Streams that began to read their bodies during the current read. */
  readonly #batched: RequestStream[] = [];
  /** `heard` of the core as of the last sweep that saw it change, and the time of that sweep (`performance.now()` ms). */
  #heard = 0;
  #heardAt = 0;
  /** Our keepalive PING has not been acknowledged yet. */
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

  /** Called by the transport, or by the engine after it has ended the connection. */
  onFault(error: unknown): void {
    this.#host.onFault(error);
    this.endsWith = "TG_INTERNAL";
    this.#core.destroy("a defect of the gateway");
  }

  // ── from the engine ──

  onStream(): Http2Stream {
    // A connection that was opened during the drain gets one response first.
    if (this.#host.draining) this.askToReconnect();
    return new RequestStream(this);
  }

  onSettings(): void {}

  onGoAway(): void {
    // The client opens no more streams and closes the connection when the open ones have ended.
  }

  onStreamGone(): void {
    if (this.#core.streamCount > 0) return;
    this.#deadline.restart();
    this.#closeIfDone();
  }

  /** The client broke the protocol or a limit. */
  onConnectionError(code: number, message: string): void {
    this.acceptor.rejected(this, "TG_INVALID_REQUEST", `${errorName(code)}: ${message}`, undefined);
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
    // Counted from its first byte: a head that trickles in ("slowloris", CVE-2024-27983) must not occupy the connection.
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

  /** A client that vanished without a FIN would occupy its streams until their backends send something. */
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

  /** An idle client may be about to send a request: it is asked to reconnect first, so the request is either served or not sent. */
  closeIfIdle(): void {
    const core = this.#core;
    if (core.streamCount > 0 || core.hasWaiting) return;
    if (this.#leaving === "last") core.end();
    else this.askToReconnect();
  }

  /** No further request can arrive or is accepted: the connection ends with its last stream. */
  #closeIfDone(): void {
    if (!this.#reading && (this.#leaving === "last" || this.#host.closesIdle)) this.closeIfIdle();
  }

  /**
   * In two steps (RFC 9113 6.8): the first GOAWAY asks the client to open no more streams here, and streams that it opens before the
   * GOAWAY arrives are still served.
   */
  askToReconnect(): void {
    if (this.#leaving !== "no") return;
    this.#leaving = "asked";
    this.#leaveBy = performance.now() + LEAVE_MS;
    this.#core.goAway(false);
    // A client that reads a large response slowly may acknowledge late, which is no reason to close its connection.
    this.#core.ping(() => this.#leaveNow(), 0);
  }

  #leaveNow(): void {
    if (this.#leaving !== "asked") return;
    this.#leaving = "last";
    this.#core.goAway(true);
    this.#closeIfDone();
  }

  terminate(reason: string): void {
    this.endsWith = "TG_SHUT_DOWN";
    this.#core.destroy(`${reason} before the request was complete`);
  }
}
