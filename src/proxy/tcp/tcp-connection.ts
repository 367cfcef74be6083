/** A client connection without HTTP, copied to a backend and back. */

import { ERRORS, type ErrorCode, GatewayError, messageOf, type Reason, withCause } from "../../base/errors.ts";
import type { Origin } from "../../base/origin.ts";
import type { Rostered } from "../../base/roster.ts";
import type { Sweepable } from "../../base/sweeper.ts";
import type { Activation } from "../../cel/index.ts";
import { clientName } from "../../net/addresses.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import type { ShownVariables } from "../../telemetry/shown-variables.ts";
import type { Balancer } from "../../upstream/balancers/balancer.ts";
import {
  type CallFailure,
  type CallProtocol,
  UpstreamCall,
  type UpstreamCaller,
} from "../../upstream/calls/upstream-call.ts";
import type { UpstreamConnection } from "../../upstream/connections/connection.ts";
import type { Endpoint } from "../../upstream/endpoints/endpoint.ts";
import type { CompiledBackend, CompiledBind, CompiledListener, CompiledTcpRoute } from "../compile/compiled.ts";
import type { LiveConnection } from "../ingress/arrival.ts";
import { callable, pick } from "../phases/select-backend.ts";
import type { Services } from "../services/services.ts";
import { isLogged, logAccess } from "../telemetry/log-access.ts";
import { recordConnection } from "../telemetry/record-connection.ts";
import { connectionVariables, shownOfConnection } from "../variables/connection-variables.ts";
import { ConnectionTrace, protocolOfConnection } from "./connection-trace.ts";

/** The bind of a connection. */
export interface TcpHost {
  /** Of the configuration in effect: a connection may outlive the one with which it began. */
  readonly bind: CompiledBind;
  onConnectionClose(connection: TcpConnection): void;
  onFault(error: unknown): void;
}

/** What a connection is made of; `listener` is undefined when the bind has none. */
interface TcpOrigin {
  readonly transport: Transport;
  readonly listener: CompiledListener | undefined;
  /** Name of the TLS handshake, `` without one. */
  readonly serverName: string;
}

const NOTHING = Buffer.alloc(0);

/**
 * One client connection whose bytes are copied to a backend and back (TCP routes, and TLS routes that pass TLS through). The
 * directions end independently (half-close, RFC 9293 3.6). If one side does not read, the other is not read either, so at most one
 * read of each side is held.
 *
 * In: a transport that has passed the connection stages. Out: one `UpstreamCall` without HTTP, and a line of the access log. The client
 * is not read before the backend is connected, so a connection that fails has consumed none of its bytes.
 */
export class TcpConnection implements TransportHandler, UpstreamCaller, LiveConnection, Rostered, Sweepable {
  place = -1;
  /** For the call, a connection is like a CONNECT: not idempotent, and its bytes cannot be sent again. */
  readonly method = "CONNECT";
  readonly replayable = false;
  readonly requestSent = true;
  /** Bytes without HTTP do not say how many gateways they have passed. */
  readonly loop = undefined;
  failed: Set<Endpoint> | undefined;
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly #origin: TcpOrigin;
  readonly #transport: Transport;
  readonly #host: TcpHost;
  readonly #services: Services;
  readonly #startedAt = performance.now();
  #route: CompiledTcpRoute | undefined;
  #backend: CompiledBackend | undefined;
  #call: UpstreamCall | undefined;
  #endpointName: string | undefined;
  #upstream: UpstreamConnection | undefined;
  /** Bytes that the client sent before the backend was connected, such as the ClientHello that the route was chosen by. */
  #early: Buffer = NOTHING;
  #clientEnded = false;
  #upstreamEnded = false;
  /** A side reads more slowly than the other one sends, and its socket's buffer is full. */
  #clientBlocked = false;
  #upstreamBlocked = false;
  /** `performance.now()` ms when bytes were last seen to move. */
  #movedAt = this.#startedAt;
  /** Bytes written to the client that the system had not taken at the last sweep: a change is movement too. */
  #backlog = 0;
  /** Only while a watcher follows the connection. */
  readonly #trace: ConnectionTrace | undefined;
  /** `closing`: accounted for, and the last bytes are still being sent; later events of the transport are ignored. */
  #state: "connecting" | "copying" | "closing" = "connecting";

  constructor(origin: TcpOrigin, host: TcpHost, services: Services) {
    this.#origin = origin;
    this.#transport = origin.transport;
    this.#host = host;
    this.#services = services;
    this.remoteAddress = origin.transport.remoteAddress;
    this.remotePort = origin.transport.remotePort;
    this.#trace = ConnectionTrace.of(origin, services, this.#startedAt);
  }

  /** Bytes from the client, for access log and metrics. */
  get bytesReceived(): number {
    return this.#transport.bytesRead;
  }

  /** Written to the client, whether or not the system has sent it yet. */
  get bytesSent(): number {
    return this.#transport.bytesWritten;
  }

  /** For the task dump. */
  get activity() {
    const now = performance.now();
    return {
      state: this.#state,
      ageMs: now - this.#startedAt,
      ...(this.#endpointName !== undefined && { endpoint: this.#endpointName }),
      bytesReceived: this.bytesReceived,
      bytesSent: this.bytesSent,
      idleMs: now - this.#movedAt,
    };
  }

  /** What expressions can read of the connection. */
  get variables(): Activation {
    return connectionVariables(this.#transport, this.#origin.serverName, this.#services);
  }

  /** The same, redacted for telemetry. */
  get shown(): ShownVariables {
    return shownOfConnection(this.variables, this.#services);
  }

  /** Chooses a backend and connects; the client is not read before that has succeeded. */
  start(): void {
    this.#transport.pause();
    try {
      this.#connect();
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.#fail(error.code, withCause(error));
      this.#transport.destroy();
    }
  }

  /** It carries one stream from beginning to end. */
  closeIfIdle(): void {}

  terminate(reason: string): void {
    this.#fail("TG_SHUT_DOWN", `${reason} before the connection was done`);
    this.#transport.destroy();
  }

  /** A connection with both directions open may be silent for as long as it likes; TCP keep-alive finds dead peers. */
  sweep(now: number): void {
    const { backlog } = this.#transport;
    if (backlog !== this.#backlog) {
      this.#backlog = backlog;
      this.#movedAt = now;
    }
    const waiting = this.#clientBlocked || this.#upstreamBlocked || this.#clientEnded || this.#upstreamEnded;
    if ((!waiting && this.#state !== "closing") || now - this.#movedAt < this.#host.bind.frontend.streamIdleTimeout)
      return;
    const clientStalls = this.#clientBlocked || this.#upstreamEnded;
    this.#fail(clientStalls ? "TG_CLIENT_TIMEOUT" : "TG_UPSTREAM_TIMEOUT", "no progress for too long");
    this.#transport.destroy();
  }

  // ── from the client ──

  onData(buffer: Buffer, length: number): void {
    this.#movedAt = performance.now();
    if (this.#state === "copying") this.#send(buffer, length);
    else if (this.#state === "connecting") this.#early = Buffer.concat([this.#early, buffer.subarray(0, length)]);
  }

  /** The client has sent FIN; it may still read (half-close). */
  onEnd(): void {
    this.#clientEnded = true;
    this.#upstream?.sendEnd([]);
    if (this.#upstreamEnded) this.#finish(undefined, "Upstream");
  }

  /** The client keeps up again, so reading from the backend continues. */
  onDrain(): void {
    this.#clientBlocked = false;
    this.#movedAt = performance.now();
    this.#upstream?.resume();
  }

  onClose(error: Error | undefined): void {
    const detail = error === undefined ? "" : `: ${messageOf(error)}`;
    this.#fail("TG_CLIENT_GONE", `${ERRORS.TG_CLIENT_GONE.message}${detail}`);
    this.#host.onConnectionClose(this);
  }

  /** A defect in one of the calls above; the transport is destroyed next. */
  onFault(error: unknown): void {
    this.#host.onFault(error);
    this.#fail("TG_INTERNAL", ERRORS.TG_INTERNAL.message);
  }

  // ── from the backend ──

  /** A tunnel has neither heads nor framing. */
  onInformational(): void {}
  onResponse(): void {}
  onResponseBatch(): void {}

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    this.#movedAt = performance.now();
    this.#trace?.progress.sent({ length: to - from });
    if (this.#transport.write(buffer, from, to)) return;
    this.#clientBlocked = true;
    this.#upstream?.pause();
  }

  /** The backend has sent FIN; it may still read (half-close). */
  onResponseEnd(): void {
    this.#upstreamEnded = true;
    this.#transport.end();
    if (this.#clientEnded) this.#finish(undefined, "Upstream");
  }

  /** The backend keeps up again, so reading from the client continues. */
  onUpstreamDrain(): void {
    this.#upstreamBlocked = false;
    this.#movedAt = performance.now();
    this.#transport.resume();
  }

  onSendFailed(_code: ErrorCode, message: string): void {
    this.#trace?.callEnded(message);
  }

  onCallFailure({ code, message, sent }: CallFailure): void {
    if (this.#state === "closing") return;
    this.#fail(code, `${ERRORS[code].message}: ${message}`);
    // A reset, so that a truncated transfer is not mistaken for a complete one.
    if (sent) this.#transport.reset();
    else this.#transport.destroy();
  }

  /** A defect in the callbacks above. The client sees a reset, as after a failure of the backend. */
  onUpstreamFault(error: unknown): void {
    this.#host.onFault(error);
    if (this.#state === "closing") return;
    this.#fail("TG_INTERNAL", ERRORS.TG_INTERNAL.message);
    this.#transport.reset();
  }

  // ── the call to the backend ──

  /** Throws a GatewayError when there is no backend to call. */
  #connect(): void {
    const { listener, serverName } = this.#origin;
    this.#route = listener?.tcpRoutes.find(serverName);
    this.#trace?.routeSelected(this.#route, listener?.tcpRoutes.routes ?? []);
    if (this.#route === undefined) throw new GatewayError("TG_ROUTE_NOT_FOUND");
    this.#backend = pick(this.#route, this.#services);
    this.#call = new UpstreamCall(this, callable(this.#backend, "tcp"));
    if (!this.#call.start()) throw new GatewayError("TG_NO_HEALTHY_BACKENDS");
  }

  get balancer(): Balancer | undefined {
    return this.#backend?.balancer;
  }

  /** Undefined: no healthy endpoint is left. Throws TG_NO_BACKENDS if a dynamic backend has no name. */
  chooseEndpoint(): Endpoint | undefined {
    const { serverName, transport } = this.#origin;
    const backend = this.#backend as CompiledBackend;
    if (backend.balancer !== undefined) return backend.balancer.choose(undefined, this.failed);
    // A dynamic backend is the server that the client named in TLS, on the port that it connected to
    // (docs/configuration.md#tcpbackenddynamic).
    const target = backend.dynamic?.read(this.variables) ?? serverName;
    if (target === "") throw new GatewayError("TG_NO_BACKENDS");
    return this.#services.dynamic(target, transport.localPort, backend.connection);
  }

  /** `raw`: the call gets a new connection, which has carried no HTTP. */
  prepare(endpoint: Endpoint): CallProtocol {
    this.#endpointName = endpoint.pool.name;
    this.#trace?.callStarted(endpoint.pool.name, this.#backend);
    return "raw";
  }

  /** Sends held bytes first, then the FIN that may have arrived meanwhile. */
  onConnection(upstream: UpstreamConnection): void {
    this.#movedAt = performance.now();
    this.#upstream = upstream;
    this.#state = "copying";
    this.#trace?.callEnded(null);
    const early = this.#early;
    this.#early = NOTHING;
    if (early.length > 0) this.#send(early, early.length);
    if (this.#clientEnded) upstream.sendEnd([]);
    if (!this.#upstreamBlocked) this.#transport.resume();
  }

  /** Stops reading the client while the backend does not keep up. */
  #send(bytes: Buffer, length: number): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    this.#trace?.progress.received({ length });
    const taken = upstream.sendBody(bytes, 0, length);
    if (upstream.flush() && taken) return;
    this.#upstreamBlocked = true;
    this.#transport.pause();
  }

  /** Ends the connection with an error. A call that is still open ends with it: the backend is not to blame. */
  #fail(code: ErrorCode, message: string): void {
    if (this.#state === "closing") return;
    this.#call?.abandon({ countFailure: false });
    this.#finish(message, ERRORS[code].reason, code);
  }

  /** Accounts for a connection that has ended, however it did. */
  #finish(error: string | undefined, reason: Reason, code?: ErrorCode): void {
    if (this.#state === "closing") return;
    this.#state = "closing";
    this.#upstream = undefined;
    this.#call?.settle();
    this.#call = undefined;
    const { bind } = this.#host;
    const chosen = { listener: this.#origin.listener, route: this.#route, backend: this.#backend };
    const origin = code && bind.provenance.ofConnectionError(code, chosen, bind.frontend);
    this.#trace?.finished(error ?? null, origin);
    this.#record(origin, reason, code);
    if (isLogged(bind, this.#services.accessLog)) this.#logAccess(error, origin, reason, code);
  }

  #record(origin: Origin | undefined, reason: Reason, code: ErrorCode | undefined): void {
    const { recorder } = this.#services;
    if (recorder === undefined) return;
    const { listener, serverName } = this.#origin;
    const { bind } = this.#host;
    recordConnection(
      {
        kind: "connection",
        generation: bind.generation,
        protocol: protocolOfConnection(listener),
        host: serverName,
        endpoint: this.#endpointName,
        client: this,
        code,
        reason,
        origin,
        received: this.bytesReceived,
        sent: this.bytesSent,
        startedAt: this.#startedAt,
      },
      (this.#backend ?? listener ?? bind).series.placeIn(recorder),
      recorder,
    );
  }

  /** One line per connection, when it ends: only then are bytes and duration known. */
  #logAccess(error: string | undefined, origin: Origin | undefined, reason: Reason, code: ErrorCode | undefined): void {
    const { listener, serverName } = this.#origin;
    logAccess(
      {
        time: Date.now(),
        gateway: listener?.gateway,
        listener: listener?.name,
        route: this.#route?.label,
        endpoint: this.#endpointName,
        source: clientName(this),
        sni: serverName === "" ? undefined : serverName,
        protocol: protocolOfConnection(listener),
        error,
        origin,
        code,
        reason,
        bytesReceived: this.bytesReceived,
        bytesSent: this.bytesSent,
        durationMs: performance.now() - this.#startedAt,
      },
      this.#host.bind,
      this.#services.accessLog,
      this,
    );
  }
}
