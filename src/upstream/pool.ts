import { isIP } from "node:net";
import type { Sweepable } from "../base/sweeper.ts";
import type { Transport } from "../net/transport.ts";
import { AddressSearch } from "./address-search.ts";
import type { ConnectAttempt, ConnectClock, ConnectTimes, ConnectWaiter } from "./connect-attempt.ts";
import { type ConnectionOwner, UpstreamConnection } from "./connection.ts";
import { Dialer, type ViaProxy } from "./dialer.ts";
import { UpstreamSession } from "./h2/session.ts";
import { type SessionOpener, SessionPool, type UpstreamWaiter } from "./h2/session-pool.ts";
import { type Http2Use, http2Use, type PoolTarget, targetName } from "./pool-target.ts";
import type { Resolver } from "./resolver.ts";
import type { BackendTcp } from "./settings.ts";
import { WaitQueue } from "./wait-queue.ts";

/** Defaults of `maxConnections` and `maxPendingRequests`, per worker and endpoint: bounds for what a stuck backend can hold. */
const MAX_CONNECTIONS = 10_000;
const MAX_PENDING_REQUESTS = 4_096;

/** A server that answered in HTTP/1.1 is asked for HTTP/2 again after this. */
const HTTP1_MEMORY_MS = 300_000;

export interface PoolSettings {
  /** Milliseconds from asking for a connection until it is there, over all addresses of the name. Default 10000. */
  readonly connectTimeout: number;
  /** Milliseconds an unused connection is kept. Default 90000. */
  readonly idleTimeout: number;
  /** Unused connections kept; undefined = all. */
  readonly maxIdle: number | undefined;
  /** Milliseconds until TCP keep-alive probes; 0 = off. */
  readonly keepAliveDelay: number;
}

/**
 * A request that waits for room for a new connection; unless it is `raw`, a connection of HTTP/1.1 that becomes free will do.
 */
interface PendingConnect extends ConnectWaiter<UpstreamConnection> {
  readonly raw: boolean;
  /** Opens the connection. */
  onRoom(): void;
}

/** What a pool has at one moment, for metrics. */
export interface PoolUse {
  /** Connections in use, unused ones, and those being opened. */
  readonly active: number;
  readonly idle: number;
  readonly connecting: number;
  /** Requests that wait for a connection. */
  readonly waiting: number;
  /** Requests that were turned away since the start because too many waited. */
  readonly overflows: number;
}

/** What a pool reports to its owner's metrics. */
export interface PoolObserver {
  /** A connection was opened; `seconds` include the TLS handshake, not the DNS lookup. */
  onConnected(seconds: number): void;
  /** A defect of the gateway has ended a connection that several exchanges shared. */
  onFault?(error: unknown): void;
}

/**
 * The connections of one worker to one target: idle ones of HTTP/1.1 and sessions of HTTP/2. Of idle connections the most
 * recently used is taken first: it is the least likely to be stale, and the rest can idle out when the load falls.
 *
 * A pool opens connections on demand, each for the request that found none free. At `maxConnections` (of both protocols
 * together) requests wait in a queue of `maxPendingRequests`, first in first out, for at most `connectTimeout`; beyond that they
 * fail with TG_POOL_FULL. Pools know nothing about health: they belong to endpoints, which do.
 */
export class Pool implements ConnectionOwner, SessionOpener, Sweepable {
  readonly target: PoolTarget;
  /** `host:port` or `unix:path`, as the trace and the log show it. */
  readonly name: string;
  /** `host[:port]` to ask the upstream for when the target is a host name (port left out when 80); undefined for addresses. */
  readonly hostname: string | undefined;
  /** Set when requests go to a proxy that forwards them. */
  readonly viaProxy: ViaProxy | undefined;
  /** Which requests go out as HTTP/2. */
  readonly http2: Http2Use;
  readonly #settings: PoolSettings;
  readonly #dialer: Dialer;
  readonly #search: AddressSearch;
  readonly #observer: PoolObserver;
  readonly #idle: UpstreamConnection[] = [];
  readonly #maxConnections: number;
  readonly #maxPending: number;
  readonly #waiting: WaitQueue<PendingConnect>;
  #sessions: SessionPool | undefined;
  /** Connections that are open, in use or not. */
  #open = 0;
  /** Connections that are being opened. They count towards `maxConnections`: a burst must not overshoot it. */
  #connecting = 0;
  /** An unused connection is being closed to make room. */
  #makingRoom = false;
  /** `performance.now()` ms; 0 = the server has never answered in HTTP/1.1. */
  #http1Until = 0;
  /** Set once the pool is closed: its last connection is gone. */
  #onDrained: (() => void) | undefined;

  constructor(target: PoolTarget, settings: PoolSettings, resolver: Resolver, observer: PoolObserver) {
    this.target = target;
    this.name = targetName(target);
    if ("host" in target && isIP(target.host) === 0)
      this.hostname =
        target.port === (target.tls === undefined ? 80 : 443) ? target.host : `${target.host}:${target.port}`;
    this.#settings = withTcp(settings, target.tcp);
    this.#dialer = new Dialer(target, this.#settings.keepAliveDelay);
    this.viaProxy = this.#dialer.viaProxy;
    this.http2 = http2Use(target);
    this.#search = new AddressSearch(target, this.#dialer.addresses, resolver, this.#settings.connectTimeout);
    this.#observer = observer;
    this.#maxConnections = target.limits?.maxConnections ?? MAX_CONNECTIONS;
    this.#maxPending = target.limits?.maxPendingRequests ?? MAX_PENDING_REQUESTS;
    this.#waiting = new WaitQueue(this.#maxPending, this.#settings.connectTimeout);
  }

  get use(): PoolUse {
    const idle = this.#idle.length + (this.#sessions?.idle ?? 0);
    const queues = [this.#waiting, ...(this.#sessions === undefined ? [] : [this.#sessions.queue])];
    return {
      active: this.#open - idle,
      idle,
      connecting: this.#connecting,
      waiting: queues.reduce((sum, { size }) => sum + size, 0),
      overflows: queues.reduce((sum, { overflows }) => sum + overflows, 0),
    };
  }

  /** `maxConnections` allows one more. */
  get hasRoom(): boolean {
    return this.#open + this.#connecting < this.#maxConnections;
  }

  /** Requests that may go out in either version go out as HTTP/1.1: the server has answered HTTP/2 with that. */
  get http1Only(): boolean {
    return this.#http1Until > 0 && performance.now() < this.#http1Until;
  }

  onHttp1(): boolean {
    const takesBoth = this.http2 === "asked";
    if (takesBoth) this.#http1Until = performance.now() + HTTP1_MEMORY_MS;
    return takesBoth;
  }

  /** Requests wait for connections of HTTP/1.1. */
  get crowded(): boolean {
    return this.#waiting.size > 0;
  }

  /** Sessions of HTTP/2; made for the first request that goes out as HTTP/2. */
  get sessions(): SessionPool {
    if (this.#sessions === undefined) {
      this.#sessions = new SessionPool(this, { ...this.#settings, maxPendingRequests: this.#maxPending });
      if (this.#onDrained !== undefined) this.#sessions.close();
    }
    return this.#sessions;
  }

  /** An unused connection, or undefined: then `connect`. */
  takeIdle(): UpstreamConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.usable) return connection;
    }
  }

  /**
   * Finds what carries a request as HTTP/1.1 or HTTP/2; at once where it is there. `fresh`: no connection of HTTP/1.1 that
   * has served before. Returns a function that cancels the wait, undefined when there is no wait.
   */
  acquire(http2: boolean, fresh: boolean, waiter: UpstreamWaiter): (() => void) | undefined {
    const session = http2 ? this.sessions.takeIdle(waiter.needsSettings) : undefined;
    if (session !== undefined) {
      waiter.onSession(session);
      return undefined;
    }
    // With `asked`, idle HTTP/1.1 connections belong to requests that did not ask for HTTP/2: the server may well speak it.
    const connection = fresh || (http2 && this.http2 === "asked") ? undefined : this.takeIdle();
    if (connection !== undefined) {
      waiter.onConnection(connection);
      return undefined;
    }
    return http2 ? this.sessions.wait(waiter) : this.connect(waiter);
  }

  /**
   * Finds what carries a request that can only go out as HTTP/2, whatever version others have. A server that agrees to HTTP/1.1
   * only, where TLS offers that too, gives the waiter such a connection. Returns as `acquire`.
   */
  acquireSession(waiter: UpstreamWaiter): (() => void) | undefined {
    const session = this.sessions.takeIdle();
    if (session === undefined) return this.sessions.wait(waiter);
    waiter.onSession(session);
    return undefined;
  }

  /**
   * Opens a new connection for the waiter, who is called after this has returned; `raw`: for bytes without HTTP, which no
   * proxy could forward. Without room for one the waiter may get one that becomes free. Returns a function that cancels the
   * wait.
   */
  connect(waiter: ConnectWaiter<UpstreamConnection>, raw = false): () => void {
    if (this.hasRoom) return this.#dial(waiter, raw);
    const pending: PendingConnect = {
      raw,
      onRoom: () => {
        cancel = this.#dial(waiter, raw);
      },
      onConnection: (connection) => waiter.onConnection(connection),
      onConnectFailure: (code, message, times) => waiter.onConnectFailure(code, message, times),
    };
    let cancel = this.#waiting.add(pending, this.makeRoom());
    return () => cancel();
  }

  #dial(waiter: ConnectWaiter<UpstreamConnection>, raw: boolean): () => void {
    this.#connecting++;
    const ended = (): void => {
      this.#connecting--;
      this.#admit();
      this.#sessions?.grow();
    };
    return this.#search.start(waiter, ended, ({ address, host }, attempt, failed) => {
      return this.#dialer.dial(address, host, raw ? "raw" : "http1", attempt.clock, {
        onConnect: (transport) => this.#opened(transport, attempt),
        onClose: failed,
      });
    });
  }

  /** Opens a connection that speaks HTTP/2, or HTTP/1.1 if the server agrees to that only or `http1` says so. */
  connectHttp2(waiter: ConnectWaiter<UpstreamSession | UpstreamConnection>, http1: boolean): () => void {
    this.#connecting++;
    // Waiters for sessions fail with this attempt instead of starting the next one.
    const ended = (): void => {
      this.#connecting--;
      this.#admit();
    };
    return this.#search.start(waiter, ended, ({ address, host }, attempt, failed) => {
      const carries = http1 ? "http1" : this.http2 === "asked" ? "both" : "http2";
      return this.#dialer.dial(address, host, carries, attempt.clock, {
        onConnect: (transport, agreed) => {
          const http2 = agreed === "h2" || (agreed !== "http/1.1" && this.http2 !== "offered" && !http1);
          if (!http2 || attempt.closed) return this.#opened(transport, attempt);
          const session = new UpstreamSession(transport, this.sessions, this.#note(attempt.clock));
          attempt.succeed(session);
          return session.handler;
        },
        onClose: failed,
      });
    });
  }

  /** A connection of HTTP/1.1 is there; if nothing waits for it any more it is closed. */
  #opened(
    transport: Transport,
    attempt: Pick<ConnectAttempt<UpstreamConnection>, "clock" | "succeed">,
  ): UpstreamConnection {
    const connection = new UpstreamConnection(transport, this, this.#note(attempt.clock));
    if (!attempt.succeed(connection)) connection.destroy();
    return connection;
  }

  #note(clock: ConnectClock): ConnectTimes {
    clock.ended();
    const { times } = clock;
    const { connect = 0, tls = 0 } = times;
    this.#open++;
    this.#observer.onConnected((connect + tls) / 1000);
    return times;
  }

  /** A place is free: lets waiting requests open connections while there is room. */
  #admit(): void {
    while (this.#waiting.size > 0 && this.hasRoom) this.#waiting.shift()?.onRoom();
    if (this.#empty) this.#onDrained?.();
  }

  /** A connection is gone, and its place is free. */
  #left(): void {
    this.#open--;
    this.#makingRoom = false;
    this.#admit();
  }

  get #empty(): boolean {
    return this.#open + this.#connecting === 0;
  }

  /** Closes an unused connection to make room for another one. False when all are in use. */
  makeRoom(): boolean {
    if (this.#makingRoom) return false;
    const unused = this.#idle.shift();
    unused?.destroy();
    this.#makingRoom = unused !== undefined || this.#sessions?.closeIdle() === true;
    return this.#makingRoom;
  }

  /** Gives a free connection, or the room that it takes, to the first request that waits. False when none waits. */
  #passOn(connection: UpstreamConnection): boolean {
    const { first } = this.#waiting;
    if (first?.raw === false) this.#waiting.shift()?.onConnection(connection);
    // Requests that go out as HTTP/2, and bytes without HTTP, have no use for it but for its place.
    else if (first !== undefined) connection.destroy();
    else if (this.#sessions === undefined || this.#sessions.queue.size === 0 || this.hasRoom) return false;
    else if (this.http2 === "asked" || this.http2 === "never") connection.destroy();
    else this.#sessions.hand(connection);
    return true;
  }

  release(connection: UpstreamConnection): void {
    if (this.#passOn(connection)) return;
    const { maxIdle } = this.#settings;
    if (this.#onDrained !== undefined || (maxIdle !== undefined && this.#idle.length >= maxIdle)) {
      connection.destroy();
      return;
    }
    connection.idleSince = 0;
    this.#idle.push(connection);
  }

  closed(connection: UpstreamConnection): void {
    const index = this.#idle.indexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
    this.#left();
    this.#sessions?.grow();
  }

  onSessionGone(): void {
    this.#left();
  }

  onFault(error: unknown): void {
    this.#observer.onFault?.(error);
  }

  /** Closes connections that have been idle for longer than `idleTimeout`; the oldest stand first. */
  sweep(now: number): void {
    const limit = now - this.#settings.idleTimeout;
    // Stamped here and not on release: reading the clock for each request would cost more.
    for (const connection of this.#idle) if (connection.idleSince === 0) connection.idleSince = now;
    while (this.#idle[0] !== undefined && this.#idle[0].idleSince < limit) this.#idle.shift()?.destroy();
    this.#sessions?.sweep(now);
  }

  /**
   * No configuration refers to the target any more: closes unused connections now, and busy ones when their exchange ends.
   * `onDrained`: none is left, and sweeping may end; a request of an old configuration may still open another one.
   */
  close(onDrained: () => void = () => {}): void {
    this.#onDrained = onDrained;
    this.#sessions?.close();
    for (const connection of this.#idle.splice(0)) connection.destroy();
    if (this.#empty) onDrained();
  }
}

/** The settings of the worker, with what the policy `tcp` of the backend changes. */
function withTcp(settings: PoolSettings, tcp: BackendTcp | undefined): PoolSettings {
  if (tcp === undefined) return settings;
  const { connectTimeout = settings.connectTimeout, keepalives } = tcp;
  if (keepalives === undefined) return { ...settings, connectTimeout };
  return { ...settings, connectTimeout, keepAliveDelay: keepalives.enabled ? keepalives.time : 0 };
}
