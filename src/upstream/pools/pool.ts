import { isIP } from "node:net";
import type { Sweepable } from "../../base/sweeper.ts";
import { SocketBudget } from "../../net/socket-budget.ts";
import type { Transport } from "../../net/transport.ts";
import type { ConnectAttempt, ConnectClock, ConnectTimes, ConnectWaiter } from "../connections/connect-attempt.ts";
import { type ConnectionOwner, UpstreamConnection } from "../connections/connection.ts";
import { type Connect, Dialer, type ViaProxy } from "../connections/dialer.ts";
import { type Wait, WaitQueue } from "../connections/wait-queue.ts";
import { UpstreamSession } from "../h2/session.ts";
import { type SessionOpener, SessionPool, type UpstreamWaiter } from "../h2/session-pool.ts";
import { ProcessCount } from "../loads/process-count.ts";
import type { SharedLoads } from "../loads/shared-loads.ts";
import type { KnownName, Resolver } from "../resolve/resolver.ts";
import { type Http2Use, http2Use, type PoolTarget, poolKey, targetName } from "../settings/pool-target.ts";
import type { BackendTcp } from "../settings/settings.ts";
import { AddressSearch } from "./address-search.ts";

/** Defaults of `maxConnections` and `maxPendingRequests`, for each worker and endpoint: they bound what a hanging backend can occupy. */
const MAX_CONNECTIONS = 10_000;
const MAX_PENDING_REQUESTS = 4_096;

/** A server that responded to HTTP/2 in HTTP/1.1 is tried with HTTP/2 again after this many milliseconds. */
const HTTP1_MEMORY_MS = 300_000;
/** The same for a server that did not respond: it may speak HTTP/2 but have been about to stop. */
const SILENCE_MEMORY_MS = 30_000;

const PATIENCE_MS = 1000;

export interface PoolSettings {
  /** Milliseconds to open a connection, over all addresses of the name. Default 10000. */
  readonly connectTimeout: number;
  /** Milliseconds that an idle connection is kept. Default 90000. */
  readonly idleTimeout: number;
  /** Idle connections that are kept; undefined = all. */
  readonly maxIdle: number | undefined;
  /** Milliseconds until TCP keep-alive probes; 0 = off. */
  readonly keepAliveDelay: number;
  /** Milliseconds after which a request that waits for a new connection goes to another endpoint, if there is one. Default 1000. */
  readonly patience?: number;
  /** Connects in place of the network; for rehearsals. */
  readonly connect?: Connect;
}

/**
 * A request that waits for room for a new connection. Unless it is `raw`, it also accepts an HTTP/1.1 connection that becomes free.
 */
interface PendingConnect extends ConnectWaiter<UpstreamConnection> {
  readonly raw: boolean;
  /** Opens the connection. */
  onRoom(): void;
}

/** The connections and queues of a pool at one moment, for metrics. */
export interface PoolUse {
  /** Connections in use, unused ones, and those being opened. */
  readonly active: number;
  readonly idle: number;
  readonly connecting: number;
  /** Requests that wait for a connection. */
  readonly waiting: number;
  /** Requests rejected since the start because too many were waiting. */
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
 * The connections of one worker to one target: idle ones of HTTP/1.1 and sessions of HTTP/2. The most recently used idle connection
 * is taken first: it is the least likely to be stale, and the rest can time out when the load falls.
 *
 * A pool opens connections on demand, one for each request that finds none idle. At `maxConnections` (of both protocols together)
 * requests wait in a queue, first in first out, for at most `connectTimeout`. If `maxPendingRequests` are waiting, further ones fail
 * with TG_POOL_FULL. Pools know nothing about health, which is a matter of endpoints.
 */
export class Pool implements ConnectionOwner, SessionOpener, Sweepable {
  readonly target: PoolTarget;
  /** `host:port` or `unix:path`, as the trace and the log show it. */
  readonly name: string;
  /** Authority for requests if the target is a host name, without the default port of the scheme; undefined for addresses. */
  readonly hostname: string | undefined;
  /** Set when requests go to a proxy that forwards them. */
  readonly viaProxy: ViaProxy | undefined;
  /** Which requests go out as HTTP/2. */
  readonly http2: Http2Use;
  readonly #settings: PoolSettings;
  readonly #dialer: Dialer;
  readonly #search: AddressSearch;
  readonly #observer: PoolObserver;
  readonly #budget: SocketBudget;
  readonly #idle: UpstreamConnection[] = [];
  #maxConnections: number;
  readonly #maxPending: number;
  readonly #pending = new ProcessCount();
  readonly #waiting: WaitQueue<PendingConnect>;
  #sessions: SessionPool | undefined;
  /** Connections that are open, in use or not. */
  #open = 0;
  /** Connections that are being opened. They count towards `maxConnections`: a burst must not overshoot it. */
  #connecting = 0;
  /** An unused connection is being closed to make room. */
  #makingRoom = false;
  /** Milliseconds; 0 = `connectTimeout` alone decides, because the backend has its own. */
  readonly patience: number;
  /** `performance.now()` ms until which the server is assumed to speak HTTP/1.1 only; 0 = no such assumption. */
  #http1Until = 0;
  /** Set by `close`; called when the last connection is gone. */
  #onDrained: (() => void) | undefined;

  /** `budget`: by default, without a limit. */
  constructor(
    target: PoolTarget,
    settings: PoolSettings,
    resolver: Resolver,
    observer: PoolObserver,
    budget: SocketBudget = new SocketBudget(),
  ) {
    this.target = target;
    this.name = targetName(target);
    if ("host" in target && isIP(target.host) === 0) {
      const { host, port, tls } = target;
      this.hostname = port === (tls === undefined ? 80 : 443) || port === 0 ? host : `${host}:${port}`;
    }
    this.#settings = withTcp(settings, target.tcp);
    this.patience = target.tcp?.connectTimeout === undefined ? (settings.patience ?? PATIENCE_MS) : 0;
    this.#dialer = new Dialer(target, this.#settings.keepAliveDelay, settings.connect);
    this.viaProxy = this.#dialer.viaProxy;
    this.http2 = http2Use(target);
    const { connectTimeout } = this.#settings;
    this.#search = new AddressSearch(this.#dialer.addresses, resolver, connectTimeout, budget);
    this.#observer = observer;
    this.#budget = budget;
    this.#maxConnections = target.limits?.maxConnections ?? MAX_CONNECTIONS;
    this.#maxPending = target.limits?.maxPendingRequests ?? MAX_PENDING_REQUESTS;
    // Without an open connection, the pool is full of attempts at a server that does not accept any.
    this.#waiting = new WaitQueue(this.#maxPending, this.#settings.connectTimeout, () => this.#open > 0, this.#pending);
  }

  /**
   * Makes configured limits those of the process. Waiting requests are counted over all threads. A connection can serve only its own thread,
   * so each thread gets a part of `maxConnections`. With one count for all, busy threads could take every connection, and the others would
   * not learn when one closes. False: there is no room to count.
   */
  shareLimits(loads: SharedLoads): boolean {
    const { maxConnections, maxPendingRequests } = this.target.limits ?? {};
    if (maxConnections !== undefined) this.#maxConnections = loads.partOf(maxConnections);
    return maxPendingRequests === undefined || this.#pending.share(loads, `%pending ${poolKey(this.target)}`);
  }

  /** Its limit of waiting requests is that of the process. */
  get sharesPending(): boolean {
    return this.#pending.isShared;
  }

  /** Connections of this thread, and requests that wait for one, that this pool allows. */
  get limits(): { readonly connections: number; readonly waiting: number } {
    return { connections: this.#maxConnections, waiting: this.#maxPending };
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

  /** What is known of the host name that connections go to; undefined for addresses, and while none is opened. */
  get knownName(): KnownName | undefined {
    return this.#search.knownName;
  }

  /** `maxConnections` allows one more. */
  get hasRoom(): boolean {
    return this.#open + this.#connecting < this.#maxConnections;
  }

  /** The server has recently failed to respond to HTTP/2 in HTTP/2: requests that may use either version use HTTP/1.1. */
  get http1Only(): boolean {
    return this.#http1Until > 0 && performance.now() < this.#http1Until;
  }

  onGuessFailed(answered: boolean): void {
    this.#http1Until = performance.now() + (answered ? HTTP1_MEMORY_MS : SILENCE_MEMORY_MS);
  }

  /** Requests wait for the SETTINGS of a server that may speak HTTP/1.1 only. */
  get guessing(): boolean {
    return this.#sessions?.guessing === true;
  }

  /** Requests wait for connections of HTTP/1.1. */
  get crowded(): boolean {
    return this.#waiting.size > 0;
  }

  /** Sessions of HTTP/2; made for the first request that goes out as HTTP/2. */
  get sessions(): SessionPool {
    if (this.#sessions === undefined) {
      this.#sessions = new SessionPool(this, {
        ...this.#settings,
        maxPendingRequests: this.#maxPending,
        pending: this.#pending,
      });
      if (this.#onDrained !== undefined) this.#sessions.close();
    }
    return this.#sessions;
  }

  /** Removes and returns an idle connection. If undefined, call `connect`. */
  takeIdle(): UpstreamConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.usable) return connection;
    }
  }

  /**
   * Finds a connection or session for a request that may use HTTP/1.1 or, if `http2`, HTTP/2. Calls the waiter at once if there is
   * one, and otherwise returns the wait. `fresh`: not an HTTP/1.1 connection that has served before.
   */
  acquire(http2: boolean, fresh: boolean, waiter: UpstreamWaiter): Wait | undefined {
    const session = http2 ? this.sessions.takeIdle(waiter.needsSettings) : undefined;
    if (session !== undefined) {
      waiter.onSession(session);
      return undefined;
    }
    // With `asked`, idle HTTP/1.1 connections exist because other requests did not ask for HTTP/2; the server may speak it.
    const connection = fresh || (http2 && this.http2 === "asked") ? undefined : this.takeIdle();
    if (connection !== undefined) {
      waiter.onConnection(connection);
      return undefined;
    }
    return http2 ? this.sessions.wait(waiter) : this.connect(waiter);
  }

  /**
   * Finds a session for a request that can only be sent as HTTP/2, whatever version others use. If TLS offers HTTP/1.1 too and the
   * server selects it, the waiter gets such a connection. Returns like `acquire`.
   */
  acquireSession(waiter: UpstreamWaiter): Wait | undefined {
    const session = this.sessions.takeIdle();
    if (session === undefined) return this.sessions.wait(waiter);
    waiter.onSession(session);
    return undefined;
  }

  /**
   * Opens a new connection for the waiter, which is called after this has returned. `raw`: for bytes without HTTP, which a forwarding
   * proxy cannot carry. Without room for a new connection, the waiter may get one that becomes free.
   */
  connect(waiter: ConnectWaiter<UpstreamConnection>, raw = false): Wait {
    if (this.hasRoom) return { forRoom: false, cancel: this.#dial(waiter, raw) };
    const pending: PendingConnect = {
      raw,
      onRoom: () => {
        wait = { forRoom: false, cancel: this.#dial(waiter, raw) };
      },
      onConnection: (connection) => waiter.onConnection(connection),
      onConnectFailure: (code, message, times) => waiter.onConnectFailure(code, message, times),
    };
    let wait = this.#waiting.add(pending, this.makeRoom());
    return {
      get forRoom() {
        return wait.forRoom;
      },
      cancel: () => wait.cancel(),
    };
  }

  #dial(waiter: ConnectWaiter<UpstreamConnection>, raw: boolean): () => void {
    this.#connecting++;
    const ended = (): void => {
      this.#connecting--;
      this.#admit();
      this.#sessions?.grow();
    };
    return this.#search.start(waiter, ended, ({ address, host }, attempt, failed) => {
      const handler = { onConnect: (transport: Transport) => this.#opened(transport, attempt), onClose: failed };
      return this.#dialer.dial(address, host, raw ? "raw" : "http1", attempt.clock, handler, waiter.loop);
    });
  }

  /**
   * Opens a connection that speaks HTTP/2, or HTTP/1.1 if the server selects that or `http1` is set. A CONNECT for it belongs to no request:
   * many requests wait for one session, and the hops that one of them claims must not fail the others.
   */
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
          const isGuess = this.http2 === "asked" && agreed !== "h2";
          const session = new UpstreamSession(transport, this.sessions, this.#note(attempt.clock), isGuess);
          attempt.succeed(session);
          return session.handler;
        },
        onClose: failed,
      });
    });
  }

  /** A connection of HTTP/1.1 is open; it is closed if its waiter has been cancelled. */
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
    this.#budget.used.upstream++;
    this.#observer.onConnected((connect + tls) / 1000);
    return times;
  }

  /** There is room again: lets waiting requests open connections. */
  #admit(): void {
    while (this.#waiting.size > 0 && this.hasRoom) this.#waiting.shift()?.onRoom();
    if (this.#empty()) this.#onDrained?.();
  }

  /** A connection is gone, which makes room for another one. */
  #left(): void {
    this.#open--;
    this.#budget.used.upstream--;
    this.#makingRoom = false;
    this.#admit();
  }

  #empty(): boolean {
    return this.#open + this.#connecting === 0;
  }

  /** Closes an idle connection to make room for another one. False if all are in use, or if one is being closed already. */
  makeRoom(): boolean {
    if (this.#makingRoom) return false;
    this.#makingRoom = this.closeIdle();
    return this.#makingRoom;
  }

  /** Closes the connection that has been idle for the longest time. False if all are in use. */
  closeIdle(): boolean {
    const unused = this.#idle.shift();
    unused?.destroy();
    return unused !== undefined || this.#sessions?.closeIdle() === true;
  }

  /** Gives a free connection, or the room that it takes, to the first waiting request. False if none is waiting. */
  #passOn(connection: UpstreamConnection): boolean {
    const { first } = this.#waiting;
    if (first?.raw === false) this.#waiting.shift()?.onConnection(connection);
    // Requests that need HTTP/2 or a raw connection can only use the room that it takes.
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

  /** Closes connections that have been idle for longer than `idleTimeout`; the oldest come first. */
  sweep(now: number): void {
    const limit = now - this.#settings.idleTimeout;
    // Stamped here and not on release: reading the clock for each request would cost more.
    for (const connection of this.#idle) if (connection.idleSince === 0) connection.idleSince = now;
    while (this.#idle[0] !== undefined && this.#idle[0].idleSince < limit) this.#idle.shift()?.destroy();
    this.#sessions?.sweep(now);
  }

  /**
   * No configuration refers to the target: closes idle connections now, and busy ones when their exchange ends. `onDrained` follows
   * when no connection is left; a request of an old configuration may still open another one.
   */
  close(onDrained: () => void = () => {}): void {
    this.#onDrained = onDrained;
    this.#pending.release();
    this.#sessions?.close();
    for (const connection of this.#idle.splice(0)) connection.destroy();
    if (this.#empty()) onDrained();
  }
}

/** The settings of the worker, with what the policy `tcp` of the backend changes. */
function withTcp(settings: PoolSettings, tcp: BackendTcp | undefined): PoolSettings {
  if (tcp === undefined) return settings;
  const { connectTimeout = settings.connectTimeout, keepalives } = tcp;
  if (keepalives === undefined) return { ...settings, connectTimeout };
  return { ...settings, connectTimeout, keepAliveDelay: keepalives.enabled ? keepalives.time : 0 };
}
