/** The datagrams of one client, and their endpoint. */
import { asError, ERRORS, type ErrorCode, GatewayError, type Reason, withCause } from "../../base/errors.ts";
import { canonicalAddress } from "../../base/ip-address.ts";
import { formatHostPort } from "../../base/listen-address.ts";
import type { Origin } from "../../base/origin.ts";
import type { Sweepable } from "../../base/sweeper.ts";
import type { Activation } from "../../cel/index.ts";
import type { Connected } from "../../http/source.ts";
import { AddressRefused, type AdmittedAddress, type SocketAddress } from "../../net/egress.ts";
import type { DatagramSource, UdpFlow, UdpFlowEvents } from "../../net/udp-socket.ts";
import type { NetworkAuthorizer } from "../../policies/ext-authz/network.ts";
import type { ShownVariables } from "../../telemetry/shown-variables.ts";
import { NO_RESPONSE, SUCCEEDED } from "../../upstream/calls/outlier.ts";
import type { Endpoint } from "../../upstream/endpoints/endpoint.ts";
import type { LocateFailure } from "../../upstream/resolve/resolver.ts";
import type { CompiledBackend, CompiledBind, CompiledListener, CompiledTcpRoute } from "../compile/compiled.ts";
import type { LiveConnection } from "../ingress/arrival.ts";
import { callable, pick } from "../phases/select-backend.ts";
import type { Services } from "../services/services.ts";
import { ConnectionTrace } from "../tcp/connection-trace.ts";
import { isLogged, logAccess } from "../telemetry/log-access.ts";
import { recordConnection } from "../telemetry/record-connection.ts";
import { connectionVariables, shownOfConnection } from "../variables/connection-variables.ts";

/** Why a datagram was dropped; the label `reason` of the metric. */
export type DropReason =
  | "authorization"
  | "backend"
  | "draining"
  | "overload"
  | "own-address"
  | "queue"
  | "sessions"
  | "size";

/** Where a session sends datagrams to. */
export type Flow = Pick<UdpFlow, "to" | "send" | "close">;

/** The port of a session. */
export interface UdpHost {
  /** Milliseconds of silence after which a session ends. */
  readonly idleTimeout: number;
  /** Of the configuration in effect: a session may outlive the one with which it began. */
  readonly bind: CompiledBind;
  /** Sends a datagram to a client. */
  answer(bytes: Uint8Array, to: DatagramSource): void;
  /** A socket for this session, which counts until the session ends; undefined: there is no room for it. */
  openFlow(address: AdmittedAddress, session: UdpSession): Flow | undefined;
  onDropped(reason: DropReason): void;
  onSessionEnd(session: UdpSession): void;
}

/** Datagrams that wait until the session has a socket: 64 KiB of them is one of the largest size, and many of usual size. */
const MAX_HELD = 32;
const MAX_HELD_BYTES = 64 * 1024;
/** Milliseconds without a datagram after which a session ends during a shutdown. */
const DRAIN_IDLE_MS = 1000;

/**
 * The datagrams between one client address and port and one endpoint. The backend and its endpoint are chosen when the session
 * begins, by weight and by the balancer, and do not change. Neither does the socket towards the endpoint, whose port identifies the
 * client to the backend. A session ends after silence, with its endpoint, or when the system reports the endpoint as unreachable; the
 * client's next datagram then begins another session, with a new choice.
 *
 * A session without a usable backend, or whose client an authorization service denies, drops the client's datagrams until it ends:
 * choosing or asking again for each datagram would let clients multiply work.
 */
export class UdpSession implements UdpFlowEvents, LiveConnection, Sweepable {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly listener: CompiledListener | undefined;
  /** Bytes from the client, in datagrams that were sent on. */
  bytesReceived = 0;
  /** Bytes to the client. */
  bytesSent = 0;
  /** `performance.now()` ms of the last datagram in either direction. */
  movedAt: number;
  readonly #client: DatagramSource;
  readonly #from: Connected;
  readonly #host: UdpHost;
  readonly #services: Services;
  readonly #startedAt: number;
  #route: CompiledTcpRoute | undefined;
  #backend: CompiledBackend | undefined;
  #endpoint: Endpoint | undefined;
  #flow: Flow | undefined;
  #state: "authorizing" | "connecting" | "open" | "dropping" | "closed" = "connecting";
  #dropped: DropReason = "backend";
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** `performance.now()` ms of the first datagram to and from the endpoint; 0 = none yet. */
  #sentAt = 0;
  #answeredAt = 0;
  /** The error for the access log; undefined = none. */
  #error: { readonly message: string; readonly reason: Reason; readonly code?: ErrorCode } | undefined;
  readonly #cancels: (() => void)[] = [];
  /** Only while someone follows the session. */
  readonly #trace: ConnectionTrace | undefined;
  #draining = false;

  constructor(
    client: DatagramSource,
    from: Connected,
    listener: CompiledListener | undefined,
    host: UdpHost,
    services: Services,
  ) {
    this.#client = client;
    this.#from = from;
    this.#host = host;
    this.#services = services;
    this.listener = listener;
    this.remoteAddress = from.remoteAddress;
    this.remotePort = from.remotePort;
    this.#startedAt = performance.now();
    this.movedAt = this.#startedAt;
    this.#trace = ConnectionTrace.ofSession(from, services, this.#startedAt);
  }

  get client(): DatagramSource {
    return this.#client;
  }

  /** Undefined until one has been chosen, and if none is usable. */
  get endpoint(): Endpoint | undefined {
    return this.#endpoint;
  }

  get activity(): LiveConnection["activity"] {
    return { state: this.#state, ageMs: performance.now() - this.#startedAt };
  }

  /** What expressions can read of the session. */
  get variables(): Activation {
    return connectionVariables(this.#from, "", this.#services);
  }

  /** The same, redacted for telemetry. */
  get shown(): ShownVariables {
    return shownOfConnection(this.variables, this.#services);
  }

  /** Chooses the endpoint, after the service has allowed the client. */
  start(authorizer: NetworkAuthorizer | undefined): void {
    if (authorizer === undefined) {
      this.#connect();
      return;
    }
    this.#state = "authorizing";
    authorizer
      .ask(this.variables, (cancel) => (this.#state === "closed" ? cancel() : this.#cancels.push(cancel)))
      .then((decision) => {
        if (this.#state === "closed") return;
        if (decision.allowed) this.#connect();
        else this.#fail("TG_EXT_AUTHZ", `${ERRORS.TG_EXT_AUTHZ.message}: ${decision.why}`, "authorization");
      })
      .catch((error: unknown) => {
        this.#services.log.error("a UDP session failed inside the gateway", { error: asError(error) });
        this.terminate(ERRORS.TG_INTERNAL.message);
      });
  }

  // ── from the client ──

  onClientDatagram(bytes: Buffer): void {
    this.movedAt = performance.now();
    if (this.#state === "open") this.#send(bytes);
    else if (this.#state === "dropping") this.#host.onDropped(this.#dropped);
    else if (this.#held.length >= MAX_HELD || this.#heldBytes + bytes.length > MAX_HELD_BYTES)
      this.#host.onDropped("queue");
    else {
      this.#held.push(bytes);
      this.#heldBytes += bytes.length;
    }
  }

  // ── from the endpoint ──

  onOpen(): void {
    this.#state = "open";
    this.#trace?.callEnded(null);
    const held = this.#held;
    this.#held = [];
    for (const bytes of held) this.#send(bytes);
  }

  onDatagram(bytes: Buffer): void {
    this.movedAt = performance.now();
    this.#answeredAt ||= this.movedAt;
    this.bytesSent += bytes.length;
    this.#trace?.progress.sent(bytes);
    this.#host.answer(bytes, this.#client);
  }

  onError(error: Error): void {
    if (error instanceof AddressRefused) this.#unreachable(error);
    else this.#fault("TG_UPSTREAM_FAILED", `${ERRORS.TG_UPSTREAM_FAILED.message}: ${error.message}`);
  }

  // ── ends ──

  sweep(now: number): void {
    if (this.#leadsBack()) {
      this.terminate(`${ERRORS.TG_LOOP.message}: the backend has become a port of this gateway`, ERRORS.TG_LOOP.reason);
      return;
    }
    const limit = this.#draining ? Math.min(DRAIN_IDLE_MS, this.#host.idleTimeout) : this.#host.idleTimeout;
    if (now - this.movedAt >= limit) this.#end();
  }

  /** Does nothing: datagrams have no end, so only silence shows that a session is over. */
  closeIfIdle(): void {
    this.#draining = true;
  }

  terminate(message: string, reason: Reason = "Internal"): void {
    this.#error ??= { message, reason };
    this.#end();
  }

  // ── connecting to the endpoint ──

  #connect(): void {
    this.#state = "connecting";
    try {
      const endpoint = this.#choose();
      const { target, name } = endpoint.pool;
      if (!("host" in target)) throw new GatewayError("TG_BACKEND_TYPE", undefined, new Error(name));
      this.#endpoint = endpoint;
      endpoint.begin();
      this.#trace?.callStarted(endpoint.pool.name, this.#backend);
      this.#sentAt = performance.now();
      if (this.#backend !== undefined) this.#backend.calls.total++;
      this.#services.resolver.locate(target, "udp", ([found], failure) => {
        if (this.#state !== "connecting") return;
        if (found !== undefined) this.#open(found.address);
        else this.#unreachable(failure ?? { code: "TG_DNS_FAILED", message: "no address" });
      });
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.#fail(error.code, withCause(error), "backend");
    }
  }

  /** Throws a GatewayError when there is no endpoint. */
  #choose(): Endpoint {
    this.#route = this.listener?.tcpRoutes.find("");
    this.#trace?.routeSelected(this.#route, this.listener?.tcpRoutes.routes ?? []);
    if (this.#route === undefined) throw new GatewayError("TG_ROUTE_NOT_FOUND");
    this.#backend = pick(this.#route, this.#services);
    const endpoint = callable(this.#backend, "udp").balancer?.choose();
    if (endpoint === undefined) throw new GatewayError("TG_NO_HEALTHY_BACKENDS");
    return endpoint;
  }

  #open(address: AdmittedAddress): void {
    // Forged: backends would answer their own answers, or each other's, for ever.
    if (this.#comesFromBackend(address)) {
      this.#fail("TG_LOOP", `${ERRORS.TG_LOOP.message}: the client has the address and port of a backend`, "backend");
      return;
    }
    this.#flow = this.#host.openFlow(address, this);
    if (this.#flow === undefined) {
      this.#host.onDropped("sessions");
      this.terminate("the limit of open files leaves no room for the session", "Overload");
    }
  }

  /** `address`: of the chosen endpoint. Others that are known by name only are not recognized. */
  #comesFromBackend(address: AdmittedAddress): boolean {
    const { remoteAddress, remotePort } = this;
    const isClient = (at: SocketAddress): boolean =>
      "host" in at && at.port === remotePort && canonicalAddress(at.host) === remoteAddress;
    const isEndpoint = ({ pool: { target } }: Endpoint): boolean =>
      "host" in target && (target.at ?? [target.host]).some((host) => isClient({ host, port: target.port }));
    const backends = this.#route?.backends ?? [];
    return isClient(address.options) || backends.some(({ balancer }) => balancer?.endpoints.some(isEndpoint));
  }

  /** A configuration may open a port at an address to which flows exist; those of TCP stay with whoever accepted them. */
  #leadsBack(): boolean {
    const to = this.#flow?.to;
    return to !== undefined && this.#services.egress.isOwn(to.host, to.port, "udp");
  }

  /** A refused address stays refused, so the client's datagrams are dropped for the rest of the session. */
  #unreachable({ code, message }: LocateFailure): void {
    const text = `${ERRORS[code].message}: ${message}`;
    if (code === "TG_LOOP" || code === "TG_ADDRESS_REFUSED") this.#fail(code, text, "backend");
    else this.#fault(code, text);
  }

  #send(bytes: Buffer): void {
    if (this.#flow?.send(bytes) === true) {
      this.bytesReceived += bytes.length;
      this.#trace?.progress.received(bytes);
    } else this.#host.onDropped("queue");
  }

  /** The endpoint cannot be reached; the next datagram gets another choice. */
  #fault(code: ErrorCode, message: string): void {
    for (const _ of this.#held) this.#host.onDropped("backend");
    this.#error ??= { message, reason: ERRORS[code].reason, code };
    this.#end();
  }

  /** There is no usable endpoint for the rest of the session. */
  #fail(code: ErrorCode, message: string, dropped: DropReason): void {
    this.#error = { message, reason: ERRORS[code].reason, code };
    this.#trace?.callEnded(message);
    this.#state = "dropping";
    this.#dropped = dropped;
    for (const _ of this.#held) this.#host.onDropped(dropped);
    this.#held = [];
  }

  #end(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#held = [];
    for (const cancel of this.#cancels) cancel();
    this.#flow?.close();
    this.#rate();
    const { bind } = this.#host;
    const { code } = this.#error ?? {};
    const chosen = { listener: this.listener, route: this.#route, backend: this.#backend };
    const origin = code && bind.provenance.ofConnectionError(code, chosen, bind.frontend);
    this.#trace?.finished(this.#error?.message ?? null, origin);
    this.#record(origin);
    if (isLogged(bind, this.#services.accessLog)) this.#log(origin);
    this.#host.onSessionEnd(this);
  }

  #record(origin: Origin | undefined): void {
    const { recorder } = this.#services;
    if (recorder === undefined) return;
    const { bind } = this.#host;
    const { code, reason = "Upstream" } = this.#error ?? {};
    recordConnection(
      {
        kind: "session",
        generation: bind.generation,
        protocol: "udp",
        endpoint: this.#endpoint?.pool.name,
        client: this,
        code,
        reason,
        origin,
        received: this.bytesReceived,
        sent: this.bytesSent,
        startedAt: this.#startedAt,
      },
      (this.#backend ?? this.listener ?? bind).series.placeIn(recorder),
      recorder,
    );
  }

  /** Records the outcome: a response is a success, an error before the first response a failure; silence says nothing. */
  #rate(): void {
    const endpoint = this.#endpoint;
    if (endpoint === undefined) return;
    const answered = this.#answeredAt !== 0;
    if (!answered && this.#error?.reason !== "UpstreamFailure" && this.#error?.reason !== "NoHealthyBackend") {
      endpoint.abandon();
      return;
    }
    const seconds = answered ? (this.#answeredAt - this.#sentAt) / 1000 : 0;
    const outliers = this.#backend?.outliers;
    if (outliers === undefined) endpoint.end(answered, seconds);
    else outliers.record(endpoint, answered ? SUCCEEDED : NO_RESPONSE, seconds, 0);
  }

  #log(origin: Origin | undefined): void {
    const { message: error, code, reason } = this.#error ?? {};
    logAccess(
      {
        time: Date.now(),
        gateway: this.listener?.gateway,
        listener: this.listener?.name,
        route: this.#route?.label,
        endpoint: this.#endpoint?.pool.name,
        source: formatHostPort(this.remoteAddress, this.remotePort),
        protocol: "udp",
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
