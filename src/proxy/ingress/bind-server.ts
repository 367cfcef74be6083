/**
 * The client's door of one bind in one worker. Connections come in from the listening socket or out of tunnels, pass the stages
 * of chain.ts, and are then served: HTTP requests become exchanges (exchange.ts), bytes of TCP and of TLS that passes through
 * go to tcp-connection.ts, CONNECT on a port of tunnels leads to another bind (tunnel.ts). data-plane.ts makes a server for each
 * bind, puts new configurations into effect, and drains it.
 *
 * Connections are known here by what all of them have (LiveConnection); requests are known by the connection that carries
 * them. So nothing here depends on how many streams a connection has, or on the version of HTTP.
 */
import { asError, ERRORS, type ErrorCode, type Reason } from "../../base/errors.ts";
import { formatHostPort } from "../../base/listen-address.ts";
import type { Sweepable, Sweeper } from "../../base/sweeper.ts";
import type { HttpRequest } from "../../http/message.ts";
import { serveHttp } from "../../http/server/serve-http.ts";
import type { ClientConnection, Downstream, HttpConnection, HttpHost, StreamAcceptor } from "../../http/stream.ts";
import type { Frontend } from "../../ir/ir.ts";
import { Acceptor } from "../../net/acceptor.ts";
import type { Addresses } from "../../net/addresses.ts";
import type { ConnectionStage } from "../../net/connection-stage.ts";
import { type ByteStream, Transport, type TransportHandler } from "../../net/transport.ts";
import type { ConnectionSeries } from "../../telemetry/metrics.ts";
import type { TlsTerminator } from "../../tls/tls-terminator.ts";
import type { CompiledBind, CompiledListener } from "../compiled.ts";
import type { Exchange } from "../exchange.ts";
import { recordRefused } from "../finish.ts";
import { openExchange } from "../handle-request.ts";
import type { Services } from "../services.ts";
import { TcpConnection, type TcpHost } from "../tcp/tcp-connection.ts";
import { type Arrival, type Ingress, type LiveConnection, protocolOf } from "./arrival.ts";
import { admit } from "./chain.ts";
import type { DrainablePort } from "./drain.ts";
import { Tunnel, type TunnelTarget, type TunnelTargets } from "./tunnel.ts";

/** A connection that has passed the stages. Its bytes count when it closes. */
interface ServedConnection extends LiveConnection, Sweepable {
  /** Inside TLS where it ends here. */
  readonly bytesReceived: number;
  readonly bytesSent: number;
}

/** One listening port of this thread and its connections; outlives configurations that keep the port. */
export class BindServer implements Ingress, HttpHost, TcpHost, StreamAcceptor, TunnelTarget, DrainablePort {
  readonly services: Services;
  readonly #targets: TunnelTargets;
  readonly #sweeper: Sweeper;
  readonly #onEmpty: () => void;
  /** Of a port of tunnels: each request is a tunnel. */
  readonly #tunnels: StreamAcceptor;
  /** Every open connection; those that are served with the counters that they count with. */
  readonly #live = new Map<LiveConnection, ConnectionSeries | undefined>();
  /** HTTP connections whose TLS ends here, with what ended it. */
  readonly #secured = new Map<HttpConnection, TlsTerminator | undefined>();
  /** Counters of connections without a listener of their own. */
  readonly #series: ConnectionSeries;
  #bind: CompiledBind;
  #acceptor: Acceptor | undefined;
  /** Responses ask clients to close their connections. */
  draining = false;
  /** Connections without a stream are closed. */
  closesIdle = false;

  /** `onEmpty` is called when the last connection has closed. */
  constructor(bind: CompiledBind, targets: TunnelTargets, services: Services, sweeper: Sweeper, onEmpty: () => void) {
    this.#bind = bind;
    this.#targets = targets;
    this.services = services;
    this.#sweeper = sweeper;
    this.#onEmpty = onEmpty;
    const labels = { bind: bind.key, gateway: "unknown", listener: "unknown", protocol: bind.protocol };
    this.#series = services.metrics.connection(labels);
    this.#tunnels = {
      open: (downstream, request) => new Tunnel(downstream, request, this.#bind, this.#targets, this.services),
      refused: (from, code, detail, received) => this.refused(from, code, detail, received),
    };
  }

  get bind(): CompiledBind {
    return this.#bind;
  }

  get frontend(): Frontend {
    return this.#bind.frontend;
  }

  get accessLogRules(): TcpHost["accessLogRules"] {
    return this.#bind;
  }

  /** Open connections, in whatever stage they are. */
  get connections(): number {
    return this.#live.size;
  }

  /** The one that is listened on, or that an internal bind stands for; 0 = none. */
  get port(): number {
    return this.#acceptor?.port || (this.#bind.mode === "internal" ? this.#bind.port : 0);
  }

  /** Serves what comes out of tunnels to ports that no bind has. */
  get wildcard(): boolean {
    return this.#bind.mode === "internal" && this.#bind.port === 0;
  }

  /**
   * Requests from now on see the new configuration; those under way keep theirs. Clients of a listener whose TLS has changed are
   * asked to connect again (reference 1.1): what they negotiated, and how they were authenticated, is that of the old one.
   */
  update(bind: CompiledBind): void {
    const { protocol } = this.#bind;
    this.#bind = bind;
    for (const [connection, terminator] of this.#secured) this.#leaveIfChanged(connection, terminator);
    if (protocol !== "http" || bind.protocol === "http") return;
    for (const connection of this.#live.keys()) connection.askToReconnect?.();
  }

  #leaveIfChanged(connection: HttpConnection, terminator: TlsTerminator | undefined): void {
    if (this.#bind.listeners.find(connection.tls?.serverName ?? "")?.terminator !== terminator)
      connection.askToReconnect();
  }

  // ── the listening socket and its drain (drain.ts) ──

  /** Rejects with the system's error when the port cannot be had. */
  async listen(port: number, reusePort: boolean): Promise<void> {
    const { host, frontend } = this.#bind;
    const keepAliveDelay = frontend.keepalives.enabled ? frontend.keepalives.time : 0;
    const budget = this.services.clientSockets;
    this.#acceptor = await Acceptor.listen({ host, port, reusePort, keepAliveDelay, budget }, (transport) =>
      this.#takesConnection() ? this.#admit(transport, false) : undefined,
    );
  }

  get accepted(): number {
    return this.#acceptor?.accepted ?? 0;
  }

  announceDrain(): void {
    this.draining = true;
    for (const connection of this.#live.keys()) connection.askToReconnect?.();
  }

  holdConnections(): void {
    this.#acceptor?.hold();
  }

  stopListening(): void {
    this.#acceptor?.close();
  }

  serveHeld(): void {
    this.#acceptor?.release();
  }

  closeIdle(): void {
    this.closesIdle = true;
    for (const connection of this.#live.keys()) connection.closeIfIdle();
  }

  /** All steps at once, for a bind that the configuration no longer has. */
  drain(): void {
    this.announceDrain();
    this.stopListening();
    this.closeIdle();
  }

  /** Ends every connection at once; the requests on them are accounted for as cut. */
  destroy(): void {
    this.stopListening();
    this.serveHeld();
    for (const connection of this.#live.keys()) connection.terminate("the gateway shut down");
  }

  // ── the way in (chain.ts) ──

  /** What comes out of a tunnel to this bind. `from`: addresses of its client. */
  serve(stream: ByteStream, from: Addresses): void {
    if (this.closesIdle || !this.#takesConnection()) stream.destroy();
    else Transport.over(stream, from, (transport) => this.#admit(transport, true));
  }

  #takesConnection(): boolean {
    return this.connections < this.#bind.frontend.maxConnections && this.services.overload.admitConnection();
  }

  #admit(transport: Transport, tunnelled: boolean): TransportHandler {
    const arrival = { transport, tunnelled, listener: undefined, serverName: "", metadata: undefined };
    return admit(arrival, this, (complete) => this.#serve(complete));
  }

  onStageBegun(stage: LiveConnection): void {
    this.#live.set(stage, undefined);
  }

  onStagePassed(stage: ConnectionStage): void {
    this.#live.delete(stage);
  }

  onStageFailed(stage: ConnectionStage, message: string): void {
    this.#live.delete(stage);
    this.#logRejected(stage, message);
    this.#checkEmpty();
  }

  onRejected({ transport, listener }: Arrival, code: ErrorCode, detail: string): void {
    const { message, reason } = ERRORS[code];
    const series = this.seriesOf(listener);
    series.connections++;
    series.received += transport.bytesRead;
    this.#logRejected(transport, `${message}${detail}`, reason);
    transport.destroy();
    this.#checkEmpty();
  }

  seriesOf(listener: CompiledListener | undefined): ConnectionSeries {
    if (listener === undefined) return this.#series;
    const { gateway, name, protocol } = listener;
    const labels = { bind: this.#bind.key, gateway, listener: name, protocol: protocol.toLowerCase() };
    return this.services.metrics.connection(labels);
  }

  #serve(arrival: Arrival): TransportHandler {
    const { transport, metadata } = arrival;
    const protocol = protocolOf(arrival, this.#bind);
    if (protocol === "tcp") {
      const connection = new TcpConnection(arrival, this, this.services);
      this.#enter(connection, arrival);
      connection.start();
      return connection;
    }
    const connection = serveHttp(transport, this, protocol === "connect" ? this.#tunnels : this, metadata);
    this.#enter(connection, arrival);
    if (connection.tls !== undefined) {
      const terminator = arrival.listener?.terminator;
      this.#secured.set(connection, terminator);
      // The configuration may have changed during the handshake.
      this.#leaveIfChanged(connection, terminator);
    }
    return connection;
  }

  #enter(connection: ServedConnection, { listener }: Arrival): void {
    const series = this.seriesOf(listener);
    series.connections++;
    this.#live.set(connection, series);
    this.#sweeper.add(connection);
  }

  // ── requests ──

  open(downstream: Downstream, request: HttpRequest): Exchange {
    const exchange = openExchange(downstream, request, this.#bind, this.services);
    const { metadata } = downstream.connection;
    if (metadata !== undefined) exchange.requestMetadata.extauthz = metadata;
    return exchange;
  }

  refused(from: ClientConnection, code: ErrorCode, detail: string, received: Buffer | undefined): void {
    recordRefused(from, { code, detail, received }, this.#bind, this.services);
  }

  onVersionChange(from: HttpConnection, to: HttpConnection): void {
    const series = this.#live.get(from);
    this.#live.delete(from);
    this.#sweeper.delete(from);
    this.#live.set(to, series);
    this.#sweeper.add(to);
  }

  // ── the end of connections ──

  onConnectionClose(connection: HttpConnection | TcpConnection): void {
    const series = this.#live.get(connection);
    this.#live.delete(connection);
    this.#sweeper.delete(connection);
    if (!(connection instanceof TcpConnection)) this.#secured.delete(connection);
    if (series !== undefined) {
      series.received += connection.bytesReceived;
      series.sent += connection.bytesSent;
    }
    this.#checkEmpty();
  }

  onFault(error: unknown): void {
    this.services.log.error("a connection failed inside the gateway", { error: asError(error) });
  }

  /** Open connections with what they do, for the task dump. */
  tasks(): unknown[] {
    return [...this.#live.keys()].map((connection) => ({
      client: formatHostPort(connection.remoteAddress, connection.remotePort),
      ...connection.activity,
    }));
  }

  #logRejected(from: Pick<Addresses, "remoteAddress" | "remotePort">, error: string, reason?: Reason): void {
    this.services.accessLog.info("refused", {
      "src.addr": formatHostPort(from.remoteAddress, from.remotePort),
      error,
      ...(reason !== undefined && { reason }),
    });
  }

  #checkEmpty(): void {
    if (this.connections === 0) this.#onEmpty();
  }
}
