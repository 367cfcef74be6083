import { isIP } from "node:net";
import type { ErrorCode } from "../base/errors.ts";
import type { Sweepable } from "../base/sweeper.ts";
import type { ConnectTarget, Transport } from "../http/transport.ts";
import type { BackendTcp } from "../ir/policies.ts";
import { type ConnectionOwner, describe, UpstreamConnection } from "./connection.ts";
import { Dialer, type ViaProxy } from "./dialer.ts";
import { GrpcChannel } from "./grpc-channel.ts";
import { type Address, type PoolTarget, targetName } from "./pool-target.ts";
import type { Resolver } from "./resolver.ts";

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

/** Gets the connection or the reason why there is none; exactly one call, never before `connect` has returned. */
export interface ConnectionWaiter {
  onConnection(connection: UpstreamConnection): void;
  onConnectFailure(code: ErrorCode, message: string): void;
}

/** One address to connect to, and the name that it was found by; `` for paths. */
interface Place {
  readonly address: ConnectTarget;
  readonly host: string;
}

/** What a pool reports to its owner's metrics. */
export interface PoolObserver {
  onConnected(seconds: number): void;
}

/** Keep-alive connections to one target. The most recently used is taken first, so that the rest can idle out. */
export class Pool implements ConnectionOwner, Sweepable {
  readonly target: PoolTarget;
  /** `host:port` or `unix:path`, as the trace and the log show it. */
  readonly name: string;
  /** `host[:port]` to ask the upstream for when the target is a host name (port left out when 80); undefined for addresses. */
  readonly hostname: string | undefined;
  /** Set when requests go to a proxy that forwards them. */
  readonly viaProxy: ViaProxy | undefined;
  readonly #settings: PoolSettings;
  readonly #dialer: Dialer;
  readonly #resolver: Resolver;
  readonly #observer: PoolObserver;
  readonly #idle: UpstreamConnection[] = [];
  #grpc: GrpcChannel | undefined;
  #open = 0;
  #closed = false;
  #rotation = 0;

  constructor(target: PoolTarget, settings: PoolSettings, resolver: Resolver, observer: PoolObserver) {
    this.target = target;
    this.name = targetName(target);
    if ("host" in target && isIP(target.host) === 0)
      this.hostname =
        target.port === (target.tls === undefined ? 80 : 443) ? target.host : `${target.host}:${target.port}`;
    this.#settings = withTcp(settings, target.tcp);
    this.#dialer = new Dialer(target, this.#settings.keepAliveDelay);
    this.viaProxy = this.#dialer.viaProxy;
    this.#resolver = resolver;
    this.#observer = observer;
  }

  /** Connections that exist, idle or busy. */
  get open(): number {
    return this.#open;
  }

  /** gRPC to the same target, on a connection of its own that ends with the pool. */
  get grpc(): GrpcChannel {
    this.#grpc ??= new GrpcChannel(this.target);
    if (this.#closed) this.#grpc.close();
    return this.#grpc;
  }

  /** An unused connection, or undefined: then `connect`. */
  take(): UpstreamConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.usable) return connection;
    }
  }

  /**
   * Opens a new connection for the waiter; `raw`: for bytes without HTTP, which no proxy could forward. Returns a function
   * that gives up waiting.
   */
  connect(waiter: ConnectionWaiter, raw = false): () => void {
    const attempt = new ConnectAttempt(waiter, this.#settings.connectTimeout, raw);
    const { addresses } = this.#dialer;
    const places: Place[] = [];
    let left = addresses.length;
    let failure: string | undefined;
    const located = (found: readonly Place[], error: string | undefined): void => {
      places.push(...found);
      failure ??= error;
      if (--left > 0) return;
      const first = this.#rotation++ % Math.max(1, places.length);
      const rotated = [...places.slice(first), ...places.slice(0, first)];
      queueMicrotask(() => {
        if (rotated.length === 0) attempt.fail("TG_DNS_FAILED", failure ?? "there is no proxy to go through");
        else this.#try(attempt, rotated, 0);
      });
    };
    for (const address of addresses) this.#locate(address, located);
    if (addresses.length === 0) queueMicrotask(() => located([], undefined));
    return () => attempt.cancel();
  }

  #locate(address: Address, callback: (places: readonly Place[], error: string | undefined) => void): void {
    if ("path" in address) {
      callback([{ address, host: "" }], undefined);
      return;
    }
    const { host, port } = address;
    this.#resolver.resolve(host, (found, error) =>
      callback(error === undefined ? found.map((each) => ({ address: { host: each, port }, host })) : [], error),
    );
  }

  /** Tries the addresses one after the other until one connects; one that does not answer leaves time for the others. */
  #try(attempt: ConnectAttempt, places: readonly Place[], index: number): void {
    const place = places[index];
    if (attempt.over || place === undefined) return;
    const start = performance.now();
    let connection: UpstreamConnection | undefined;
    const giveUp = this.#dialer.dial(place.address, place.host, attempt.raw, {
      onConnect: (transport: Transport) => {
        connection = new UpstreamConnection(transport, this);
        this.#open++;
        this.#observer.onConnected((performance.now() - start) / 1000);
        if (!attempt.succeed(connection)) connection.destroy();
      },
      onData: (buffer, length) => connection?.onData(buffer, length),
      onEnd: () => connection?.onEnd(),
      onDrain: () => connection?.onDrain(),
      onFault: (error) => connection?.onFault(error),
      onClose: (error) => {
        if (connection !== undefined) connection.onClose(error);
        else if (index + 1 < places.length) this.#try(attempt, places, index + 1);
        else attempt.fail("TG_UPSTREAM_FAILED", error === undefined ? "connection closed" : describe(error));
      },
    });
    attempt.trying(giveUp, places.length - index);
  }

  release(connection: UpstreamConnection): void {
    const { maxIdle } = this.#settings;
    if (this.#closed || (maxIdle !== undefined && this.#idle.length >= maxIdle)) {
      connection.destroy();
      return;
    }
    connection.idleSince = performance.now();
    this.#idle.push(connection);
  }

  closed(connection: UpstreamConnection): void {
    this.#open--;
    const index = this.#idle.indexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
  }

  sweep(now: number): void {
    const limit = now - this.#settings.idleTimeout;
    while (this.#idle[0] !== undefined && this.#idle[0].idleSince < limit) this.#idle.shift()?.destroy();
  }

  /** Closes unused connections now and busy ones when their exchange ends. */
  close(): void {
    this.#closed = true;
    this.#grpc?.close();
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }
}

/** One wait for a connection: ends once, by success, failure, timeout or cancellation. */
class ConnectAttempt {
  over = false;
  /** For bytes without HTTP. */
  readonly raw: boolean;
  readonly #waiter: ConnectionWaiter;
  readonly #deadline: number;
  #timer: NodeJS.Timeout;
  #giveUp: (() => void) | undefined;

  constructor(waiter: ConnectionWaiter, timeoutMs: number, raw: boolean) {
    this.#waiter = waiter;
    this.raw = raw;
    this.#deadline = performance.now() + timeoutMs;
    this.#timer = setTimeout(() => this.#expire(), timeoutMs);
  }

  /** An address is being tried; of the time that is left it gets its share among the `candidates` not tried before. */
  trying(giveUp: () => void, candidates: number): void {
    this.#giveUp = giveUp;
    if (candidates === 1) return;
    clearTimeout(this.#timer);
    const share = (this.#deadline - performance.now()) / candidates;
    this.#timer = setTimeout(() => {
      this.#timer = setTimeout(() => this.#expire(), this.#deadline - performance.now());
      giveUp();
    }, share);
  }

  succeed(connection: UpstreamConnection): boolean {
    if (this.over) return false;
    this.#end();
    this.#waiter.onConnection(connection);
    return true;
  }

  fail(code: ErrorCode, message: string): void {
    if (this.over) return;
    this.#end();
    this.#waiter.onConnectFailure(code, message);
  }

  cancel(): void {
    if (this.over) return;
    this.#end();
    this.#giveUp?.();
  }

  #expire(): void {
    this.fail("TG_UPSTREAM_TIMEOUT", "connect timeout");
    this.#giveUp?.();
  }

  #end(): void {
    this.over = true;
    clearTimeout(this.#timer);
  }
}

function withTcp(settings: PoolSettings, tcp: BackendTcp | undefined): PoolSettings {
  if (tcp === undefined) return settings;
  const { connectTimeout = settings.connectTimeout, keepalives } = tcp;
  if (keepalives === undefined) return { ...settings, connectTimeout };
  return { ...settings, connectTimeout, keepAliveDelay: keepalives.enabled ? keepalives.time : 0 };
}
