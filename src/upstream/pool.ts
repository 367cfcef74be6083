import { isIP } from "node:net";
import type { Sweepable } from "../base/sweeper.ts";
import { type ConnectTarget, Transport } from "../http/transport.ts";
import type { BackendTcp } from "../ir/policies.ts";
import { ConnectAttempt, type ConnectWaiter, type UpstreamWaiter } from "./connect-attempt.ts";
import type { ConnectClock, ConnectTimes } from "./connect-clock.ts";
import { type ConnectionOwner, describe, UpstreamConnection } from "./connection.ts";
import { Dialer, type ViaProxy } from "./dialer.ts";
import { GrpcChannel } from "./grpc-channel.ts";
import { UpstreamSession } from "./h2/session.ts";
import { type SessionOpener, SessionPool } from "./h2/session-pool.ts";
import { type Address, type Http2Use, http2Use, type PoolTarget, targetName } from "./pool-target.ts";
import type { Resolver } from "./resolver.ts";
import { isThisMachine } from "./this-machine.ts";

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

/** One address to connect to, and the name that it was found by; `` for paths. */
interface Place {
  readonly address: ConnectTarget;
  readonly host: string;
}

/** Tries one place: the attempt succeeds or `failed` is called. Returns a function that gives up. */
type Dial<Connected> = (
  place: Place,
  attempt: ConnectAttempt<Connected>,
  failed: (error: Error | undefined) => void,
) => () => void;

type Timed = Pick<ConnectAttempt<unknown>, "clock">;

/** What a pool reports to its owner's metrics. */
export interface PoolObserver {
  onConnected(seconds: number): void;
}

/**
 * The connections to one target that are kept: idle ones of HTTP/1.1, of which the most recently used is taken first, so that
 * the rest can idle out, and the sessions of HTTP/2.
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
  readonly #resolver: Resolver;
  readonly #observer: PoolObserver;
  readonly #idle: UpstreamConnection[] = [];
  #sessions: SessionPool | undefined;
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
    this.http2 = http2Use(target);
    this.#resolver = resolver;
    this.#observer = observer;
  }

  /** Connections that exist, idle or busy. */
  get open(): number {
    return this.#open;
  }

  /** Connections that speak HTTP/2. */
  get sessions(): SessionPool {
    if (this.#sessions === undefined) {
      this.#sessions = new SessionPool(this, this.#settings);
      if (this.#closed) this.#sessions.close();
    }
    return this.#sessions;
  }

  /** gRPC of the gateway's own to the same target, on a connection of its own that ends with the pool. */
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
   * Finds what carries a request as HTTP/1.1 or HTTP/2; at once where it is there. `fresh`: no connection of HTTP/1.1 that
   * has served before. Returns a function that gives up waiting, undefined when there is no wait.
   */
  reach(http2: boolean, fresh: boolean, waiter: UpstreamWaiter): (() => void) | undefined {
    const session = http2 ? this.sessions.take() : undefined;
    if (session !== undefined) {
      waiter.onSession(session);
      return undefined;
    }
    // Where requests go out as HTTP/1.1 because they do not ask for more, those connections say nothing about the others.
    const connection = fresh || (http2 && this.http2 === "asked") ? undefined : this.take();
    if (connection !== undefined) {
      waiter.onConnection(connection);
      return undefined;
    }
    return http2 ? this.sessions.wait(waiter) : this.connect(waiter);
  }

  /**
   * Opens a new connection for the waiter, who is called after this has returned; `raw`: for bytes without HTTP, which no
   * proxy could forward. Returns a function that gives up waiting.
   */
  connect(waiter: ConnectWaiter<UpstreamConnection>, raw = false): () => void {
    return this.#search(waiter, (place, attempt, failed) => {
      let connection: UpstreamConnection | undefined;
      return this.#dialer.dial(place.address, place.host, raw, attempt.clock, {
        onConnect: (transport) => {
          connection = this.#opened(transport, attempt);
          if (!attempt.succeed(connection)) connection.destroy();
        },
        onData: (buffer, length) => connection?.onData(buffer, length),
        onEnd: () => connection?.onEnd(),
        onDrain: () => connection?.onDrain(),
        onFault: (error) => connection?.onFault(error),
        onClose: (error) => (connection === undefined ? failed(error) : connection.onClose(error)),
      });
    });
  }

  /** Opens a connection that speaks HTTP/2, or HTTP/1.1 if the server agrees to that only. */
  connectHttp2(waiter: ConnectWaiter<UpstreamSession | UpstreamConnection>): () => void {
    return this.#search(waiter, (place, attempt, failed) => {
      return this.#dialer.dialStream(place.address, place.host, attempt.clock, {
        onStream: (stream, from, agreed) => {
          if (attempt.over) stream.destroy();
          else if (agreed === "h2" || (agreed !== "http/1.1" && this.http2 !== "offered")) {
            attempt.succeed(new UpstreamSession(stream, this.sessions, this.#note(attempt.clock)));
          } else
            Transport.over(stream, from, (transport) => {
              const connection = this.#opened(transport, attempt);
              attempt.succeed(connection);
              return connection;
            });
        },
        onClose: failed,
      });
    });
  }

  #opened(transport: Transport, { clock }: Timed): UpstreamConnection {
    return new UpstreamConnection(transport, this, this.#note(clock));
  }

  #note(clock: ConnectClock): ConnectTimes {
    clock.ended();
    const { times } = clock;
    const { connect = 0, tls = 0 } = times;
    this.#open++;
    this.#observer.onConnected((connect + tls) / 1000);
    return times;
  }

  /** Finds the addresses and tries them one after the other. */
  #search<Connected>(waiter: ConnectWaiter<Connected>, dial: Dial<Connected>): () => void {
    const attempt = new ConnectAttempt(waiter, this.#settings.connectTimeout);
    const { addresses } = this.#dialer;
    const places: Place[] = [];
    let left = addresses.length;
    let failure: string | undefined;
    const located = (found: readonly Place[], error: string | undefined): void => {
      places.push(...found);
      failure ??= error;
      if (--left > 0) return;
      attempt.clock.located(addresses.some(isNamed));
      const first = this.#rotation++ % Math.max(1, places.length);
      const rotated = [...places.slice(first), ...places.slice(0, first)];
      queueMicrotask(() => {
        if (rotated.length === 0) attempt.fail("TG_DNS_FAILED", failure ?? "there is no proxy to go through");
        else tryPlaces(attempt, rotated, 0, dial);
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
    this.#resolver.resolve(host, (found, error) => {
      const places = found.map((each) => ({ address: { host: each, port }, host }));
      if (error !== undefined) callback([], error);
      else if (this.#avoids(port) && found.some(isThisMachine))
        callback([], `${address.host}:${port} is a server of the gateway's own; no client leads there`);
      else callback(places, undefined);
    });
  }

  /** What a proxy on the way connects to is its own matter. */
  #avoids(port: number): boolean {
    const { avoids, tunnel } = this.target;
    return tunnel === undefined && avoids !== undefined && avoids.includes(port);
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

  onSessionGone(): void {
    this.#open--;
  }

  sweep(now: number): void {
    const limit = now - this.#settings.idleTimeout;
    while (this.#idle[0] !== undefined && this.#idle[0].idleSince < limit) this.#idle.shift()?.destroy();
    this.#sessions?.sweep(now);
  }

  /** Closes unused connections now and busy ones when their exchange ends. */
  close(): void {
    this.#closed = true;
    this.#grpc?.close();
    this.#sessions?.close();
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }
}

function isNamed(address: Address): boolean {
  return "host" in address && isIP(address.host) === 0;
}

/** Until one connects; one that does not answer leaves time for the others. */
function tryPlaces<Connected>(
  attempt: ConnectAttempt<Connected>,
  places: readonly Place[],
  index: number,
  dial: Dial<Connected>,
): void {
  const place = places[index];
  if (attempt.over || place === undefined) return;
  const giveUp = dial(place, attempt, (error) => {
    if (index + 1 < places.length) tryPlaces(attempt, places, index + 1, dial);
    else attempt.fail("TG_UPSTREAM_FAILED", error === undefined ? "connection closed" : describe(error));
  });
  attempt.trying(giveUp, places.length - index);
}

function withTcp(settings: PoolSettings, tcp: BackendTcp | undefined): PoolSettings {
  if (tcp === undefined) return settings;
  const { connectTimeout = settings.connectTimeout, keepalives } = tcp;
  if (keepalives === undefined) return { ...settings, connectTimeout };
  return { ...settings, connectTimeout, keepAliveDelay: keepalives.enabled ? keepalives.time : 0 };
}
