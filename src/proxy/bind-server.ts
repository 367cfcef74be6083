import { asError, ERRORS, type ErrorCode, type Reason } from "../base/errors.ts";
import { formatHostPort } from "../base/listen-address.ts";
import type { Sweeper } from "../base/sweeper.ts";
import type { HttpRequest } from "../http/message.ts";
import { type ConnectionHost, ServerConnection } from "../http/server/connection.ts";
import type { Downstream, StreamAcceptor } from "../http/stream.ts";
import type { Frontend } from "../ir/ir.ts";
import type { Addresses } from "../net/addresses.ts";
import { type ByteStream, Transport, type TransportHandler } from "../net/transport.ts";
import type { ConnectionSeries } from "../telemetry/metrics.ts";
import type { CompiledBind, CompiledListener } from "./compiled.ts";
import { Tunnel, type TunnelTarget, type TunnelTargets } from "./connect/tunnel.ts";
import { TunnelHost } from "./connect/tunnel-host.ts";
import type { Exchange } from "./exchange.ts";
import { recordRefused } from "./finish.ts";
import { openExchange } from "./handle-request.ts";
import { ListeningPort } from "./listening-port.ts";
import { type Arrival, NetworkGate, type NetworkGateHost, type NetworkMetadata } from "./network-gate.ts";
import type { Services } from "./services.ts";
import type { LiveConnection } from "./tcp/live-connection.ts";
import { type ProxyHeaderHost, ProxyHeaderReader } from "./tcp/proxy-header.ts";
import { TcpConnection, type TcpHost, type TcpOrigin } from "./tcp/tcp-connection.ts";
import { type HandshakeHost, TlsHandshake } from "./tcp/tls-handshake.ts";
import { connectionVariables } from "./variables.ts";

const SHUT_DOWN = "the gateway shut down before the connection was done";

/** Handles the connections that were closed as soon as they came. */
const REFUSED: TransportHandler = { onData() {}, onEnd() {}, onDrain() {}, onClose() {}, onFault() {} };

/** What a connection is busy with. */
type LiveStream = Pick<Exchange, "onClientGone" | "closed"> & { readonly activity: object };

/** One listening port of this thread and its connections; outlives configurations that keep the port. */
export class BindServer
  extends ListeningPort
  implements ConnectionHost, StreamAcceptor, ProxyHeaderHost, HandshakeHost, NetworkGateHost, TcpHost, TunnelTarget
{
  readonly #targets: TunnelTargets;
  readonly #services: Services;
  readonly #sweeper: Sweeper;
  readonly #series: ConnectionSeries;
  readonly #connections = new Map<ServerConnection, LiveStream | undefined>();
  /** Counters of HTTP connections inside TLS, which are those of their listener. */
  readonly #secured = new Map<ServerConnection, ConnectionSeries>();
  /** What a service has told of HTTP connections when they came. */
  readonly #requestMetadata = new Map<ServerConnection, NetworkMetadata>();
  /** Connections in a handshake or waiting for leave, and those that are copied. */
  readonly #others = new Set<LiveConnection>();
  readonly #onEmpty: () => void;
  readonly #tunnelHost: TunnelHost;
  #bind: CompiledBind;

  constructor(bind: CompiledBind, targets: TunnelTargets, services: Services, sweeper: Sweeper, onEmpty: () => void) {
    super();
    this.#bind = bind;
    this.#targets = targets;
    this.#services = services;
    this.#sweeper = sweeper;
    this.#onEmpty = onEmpty;
    this.#tunnelHost = new TunnelHost(this, (downstream, request) => this.#openTunnel(downstream, request));
    const labels = { bind: bind.key, gateway: "unknown", listener: "unknown", protocol: bind.protocol };
    this.#series = services.metrics.connection(labels);
  }

  get frontend(): Frontend {
    return this.#bind.frontend;
  }

  get acceptor(): StreamAcceptor {
    return this;
  }

  get connections(): number {
    return this.#connections.size + this.#others.size;
  }

  /** Rejects with the system's error when the port cannot be had. */
  async listen(port: number, reusePort: boolean): Promise<void> {
    const { host, frontend } = this.#bind;
    const keepAliveDelay = frontend.keepalives.enabled ? frontend.keepalives.time : 0;
    const budget = this.#services.clientSockets;
    await this.startListening({ host, port, reusePort, keepAliveDelay, budget }, (transport) => this.#admit(transport));
  }

  /** The one that is listened on, or that an internal bind stands for; 0 = none. */
  get port(): number {
    return this.listening || (this.#bind.mode === "internal" ? this.#bind.port : 0);
  }

  /** Serves what comes out of tunnels to ports that no bind has. */
  get wildcard(): boolean {
    return this.#bind.mode === "internal" && this.#bind.port === 0;
  }

  /** Requests from now on see the new configuration; those under way keep theirs. */
  update(bind: CompiledBind): void {
    this.#bind = bind;
  }

  override closeIdle(): void {
    super.closeIdle();
    for (const connection of this.#connections.keys()) connection.drain();
  }

  /** Ends every connection at once; requests under way are accounted for as cut. */
  destroy(): void {
    this.stopListening();
    this.serveHeld();
    for (const [connection, exchange] of this.#connections) {
      connection.abort();
      exchange?.onClientGone("TG_CLIENT_GONE", "the gateway shut down before the request was complete");
    }
    for (const connection of this.#others) connection.abort(SHUT_DOWN);
  }

  open(downstream: Downstream, request: HttpRequest): Exchange {
    const exchange = openExchange(downstream, request, this.#bind, this.#services);
    const requestMetadata =
      this.#requestMetadata.size === 0
        ? undefined
        : this.#requestMetadata.get(downstream.connection as ServerConnection);
    if (requestMetadata !== undefined) exchange.requestMetadata.extauthz = requestMetadata;
    this.#connections.set(downstream.connection as ServerConnection, exchange);
    return exchange;
  }

  refused(from: Addresses, code: ErrorCode, detail: string, received: Buffer | undefined): void {
    recordRefused(from, { code, detail, received }, this.#bind, this.#services);
  }

  onConnectionClose(connection: ServerConnection): void {
    this.#connections.delete(connection);
    this.#sweeper.delete(connection);
    this.#count(this.#secured.get(connection) ?? this.#series, connection);
    this.#secured.delete(connection);
    this.#requestMetadata.delete(connection);
    this.#checkEmpty();
  }

  // ── tunnels ──

  /** What is inside a tunnel has no PROXY header and no tunnel of its own before it. */
  serve(stream: ByteStream, from: Addresses): void {
    if (this.closesIdle || this.connections >= this.#bind.frontend.maxConnections) stream.destroy();
    else Transport.over(stream, from, (transport) => this.#handlerOf(transport));
  }

  #openTunnel(downstream: Downstream, request: HttpRequest): Tunnel {
    const tunnel = new Tunnel(downstream, request, this.#bind, this.#targets, this.#services);
    this.#connections.set(downstream.connection as ServerConnection, tunnel);
    return tunnel;
  }

  // ── PROXY headers ──

  onProxyHeader(reader: ProxyHeaderReader, transport: Transport, early: Buffer): void {
    this.#others.delete(reader);
    transport.passTo(this.#outerHandlerOf(transport), early);
  }

  onProxyFailure(reader: ProxyHeaderReader, message: string): void {
    this.#refused(reader, message);
  }

  // ── TLS ──

  findListener(serverName: string): CompiledListener | undefined {
    return this.#bind.listeners.find(serverName);
  }

  onSecured(
    handshake: TlsHandshake,
    transport: Transport,
    listener: CompiledListener,
    seconds: number,
  ): TransportHandler {
    this.#others.delete(handshake);
    const series = this.#seriesOf(listener);
    series.handshake.observe(seconds);
    if (listener.protocol === "HTTPS") return this.#enterHttp(transport, this, series);
    return this.#enterTcp({ transport, listener, serverName: transport.tls?.serverName ?? "" });
  }

  onPassthrough(
    handshake: TlsHandshake,
    transport: Transport,
    listener: CompiledListener,
    serverName: string,
  ): TransportHandler {
    this.#others.delete(handshake);
    return this.#enterTcp({ transport, listener, serverName });
  }

  onHandshakeFailure(handshake: TlsHandshake, message: string): void {
    this.#refused(handshake, message);
  }

  // ── authorization of connections ──

  onAdmitted(gate: NetworkGate): void {
    this.#others.delete(gate);
  }

  onTurnedAway(gate: NetworkGate, arrival: Arrival, why: string): void {
    this.#others.delete(gate);
    this.#turnAway(arrival, "TG_EXT_AUTHZ", `: ${why}`);
  }

  onGateFailure(gate: NetworkGate, message: string): void {
    this.#refused(gate, message);
  }

  // ── TCP ──

  get accessLogRules(): TcpHost["accessLogRules"] {
    return this.#bind;
  }

  onTcpClose(connection: TcpConnection): void {
    this.#others.delete(connection);
    this.#sweeper.delete(connection);
    this.#count(connection.listener === undefined ? this.#series : this.#seriesOf(connection.listener), connection);
    this.#checkEmpty();
  }

  onFault(error: unknown): void {
    this.#services.log.error("a connection failed inside the gateway", { error: asError(error) });
  }

  /** Live connections with what they do, for the task dump. */
  tasks(): unknown[] {
    const http = [...this.#connections].map(([connection, exchange]) => ({
      client: formatHostPort(connection.remoteAddress, connection.remotePort),
      ...connection.activity,
      ...(exchange !== undefined && !exchange.closed && { exchange: exchange.activity }),
    }));
    const others = [...this.#others].map((connection) => ({
      client: formatHostPort(connection.remoteAddress, connection.remotePort),
      ...connection.activity,
    }));
    return [...http, ...others];
  }

  #admit(transport: Transport): TransportHandler | undefined {
    const { maxConnections, proxyProtocol } = this.#bind.frontend;
    if (this.connections >= maxConnections) return undefined;
    if (proxyProtocol === undefined) return this.#outerHandlerOf(transport);
    const reader = new ProxyHeaderReader(transport, proxyProtocol, this);
    this.#others.add(reader);
    return reader;
  }

  #outerHandlerOf(transport: Transport): TransportHandler {
    if (this.#bind.frontend.connect !== "tunnel") return this.#handlerOf(transport);
    return this.#enterHttp(transport, this.#tunnelHost, this.#series);
  }

  #handlerOf(transport: Transport): TransportHandler {
    switch (this.#bind.protocol) {
      case "http":
        return this.#enterHttp(transport, this, this.#series);
      case "tcp":
        return this.#enterTcp({ transport, listener: this.findListener(""), serverName: "" });
      case "tls": {
        const handshake = new TlsHandshake(transport, this, this.#bind.frontend.handshakeTimeout);
        this.#others.add(handshake);
        return handshake;
      }
    }
  }

  #enterHttp(transport: Transport, host: ConnectionHost, series: ConnectionSeries): TransportHandler {
    const enter = (requestMetadata: NetworkMetadata): TransportHandler => {
      const connection = new ServerConnection(transport, host);
      if (transport.tls !== undefined) this.#secured.set(connection, series);
      if (requestMetadata !== undefined) this.#requestMetadata.set(connection, requestMetadata);
      this.#connections.set(connection, undefined);
      this.#sweeper.add(connection);
      series.connections++;
      return connection;
    };
    return this.#guard({ transport, halfClose: false, series, enter }, transport.tls?.serverName ?? "");
  }

  #enterTcp(origin: TcpOrigin): TransportHandler {
    const { transport, listener, serverName } = origin;
    const series = listener === undefined ? this.#series : this.#seriesOf(listener);
    const enter = (): TransportHandler => {
      const connection = new TcpConnection(origin, this, this.#services);
      this.#others.add(connection);
      this.#sweeper.add(connection);
      series.connections++;
      connection.start();
      return connection;
    };
    return this.#guard({ transport, halfClose: true, series, enter }, serverName);
  }

  /** Asks once per connection whether it may come in; one that may not is closed. */
  #guard(arrival: Arrival, serverName: string): TransportHandler {
    const { network, networkAuthorizer } = this.#bind;
    if (network === undefined && networkAuthorizer === undefined) return arrival.enter(undefined);
    const variables = connectionVariables(arrival.transport, serverName, this.#services);
    if (network?.allows(variables) === false) {
      this.#turnAway(arrival, "TG_AUTHORIZATION");
      return REFUSED;
    }
    if (networkAuthorizer === undefined) return arrival.enter(undefined);
    const gate = new NetworkGate(arrival, this);
    this.#others.add(gate);
    gate.ask(networkAuthorizer, variables);
    return gate;
  }

  #turnAway({ transport, series }: Arrival, code: ErrorCode, detail = ""): void {
    const { message, reason } = ERRORS[code];
    series.connections++;
    series.received += transport.bytesRead;
    this.#logRefused(transport, `${message}${detail}`, reason);
    transport.destroy();
    this.#checkEmpty();
  }

  #seriesOf({ gateway, name, protocol }: CompiledListener): ConnectionSeries {
    const labels = { bind: this.#bind.key, gateway, listener: name, protocol: protocol.toLowerCase() };
    return this.#services.metrics.connection(labels);
  }

  #count(series: ConnectionSeries, connection: { readonly bytesReceived: number; readonly bytesSent: number }): void {
    series.received += connection.bytesReceived;
    series.sent += connection.bytesSent;
  }

  #refused(connection: LiveConnection, message: string): void {
    this.#others.delete(connection);
    this.#logRefused(connection, message);
    this.#checkEmpty();
  }

  #logRefused(from: Pick<Addresses, "remoteAddress" | "remotePort">, error: string, reason?: Reason): void {
    const source = formatHostPort(from.remoteAddress, from.remotePort);
    this.#services.accessLog.info("refused", { "src.addr": source, error, ...(reason !== undefined && { reason }) });
  }

  #checkEmpty(): void {
    if (this.connections === 0) this.#onEmpty();
  }
}
