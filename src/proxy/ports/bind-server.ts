/**
 * One bind in one worker. Connections come from the listening socket or out of tunnels, pass the stages of chain.ts, and are then
 * served: HTTP requests become exchanges (exchange.ts), bytes of TCP and of passed-through TLS go to tcp-connection.ts, CONNECT on
 * a port of tunnels leads to another bind (tunnel.ts). data-plane.ts makes a server for each bind, puts new configurations into
 * effect, and drains it.
 *
 * Connections are handled through what they have in common (LiveConnection), and requests through their connection. So nothing here
 * depends on the number of streams of a connection or on the version of HTTP.
 */
import { asError, codeOf, type ErrorCode } from "../../base/errors.ts";
import type { InheritedSocket } from "../../base/inherited-sockets.ts";
import { Roster } from "../../base/roster.ts";
import type { Sweepable } from "../../base/sweeper.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import { serveHttp } from "../../http/server/serve-http.ts";
import type { ClientConnection, Downstream, HttpConnection, HttpHost, StreamAcceptor } from "../../http/stream.ts";
import { bindAddresses, formatBindAddress } from "../../ir/bind-addresses.ts";
import type { Frontend } from "../../ir/ir.ts";
import { Acceptor } from "../../net/acceptor.ts";
import { type Addresses, clientName } from "../../net/addresses.ts";
import type { ConnectionStage } from "../../net/connection-stage.ts";
import { type ByteStream, Transport, type TransportHandler } from "../../net/transport.ts";
import type { ConnectionSeries } from "../../telemetry/metrics.ts";
import type { TlsTerminator } from "../../tls/tls-terminator.ts";
import type { CompiledBind, CompiledListener } from "../compile/compiled.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { type Arrival, type Ingress, protocolOf, type Refusal, type RosteredConnection } from "../ingress/arrival.ts";
import { admit, admitKnown } from "../ingress/chain.ts";
import { recordUnreadable } from "../phases/finish.ts";
import { openExchange } from "../phases/handle-request.ts";
import type { Services } from "../services/services.ts";
import { ConnectionTrace } from "../tcp/connection-trace.ts";
import { TcpConnection, type TcpHost } from "../tcp/tcp-connection.ts";
import { recordConnection } from "../telemetry/record-connection.ts";
import type { DrainablePort } from "./drain.ts";
import type { Sharing } from "./sharing.ts";
import { Tunnel, type TunnelTarget, type TunnelTargets } from "./tunnel.ts";

/** A connection that has passed the stages. Its bytes count when it closes. */
interface ServedConnection extends RosteredConnection {
  /** Counted inside TLS if the gateway terminates it. */
  readonly bytesReceived: number;
  readonly bytesSent: number;
}

/** What the bind keeps about a connection that is served. */
interface Served {
  /** The counters of the connection. */
  readonly series: ConnectionSeries;
  /** Set for HTTP inside TLS: the client's server name, and what terminated TLS. */
  readonly tls: { readonly serverName: string; readonly terminator: TlsTerminator | undefined } | undefined;
}

/** One listening port of this thread and its connections; outlives configurations that keep the port. */
export class BindServer implements Ingress, HttpHost, TcpHost, StreamAcceptor, TunnelTarget, DrainablePort, Sweepable {
  readonly services: Services;
  readonly #targets: TunnelTargets;
  readonly #onEmpty: () => void;
  /** For a port of tunnels, on which each request is a tunnel. */
  readonly #tunnels: StreamAcceptor;
  /** Every open connection; the value is set once it is served. */
  readonly #live = new Roster<RosteredConnection, Served | undefined>();
  /** Cache for the configuration in effect: a look-up by labels would take a hundredth of a handshake's CPU. */
  readonly #series = new Map<CompiledListener | undefined, ConnectionSeries>();
  #bind: CompiledBind;
  /** One for each address of the bind; none if it is internal. */
  readonly #acceptors: Acceptor[] = [];
  /** Responses ask clients to close their connections. */
  draining = false;
  /** Connections without a stream are closed. */
  closesIdle = false;

  /** `onEmpty` is called when the last connection has closed. */
  constructor(bind: CompiledBind, targets: TunnelTargets, services: Services, onEmpty: () => void) {
    this.#bind = bind;
    this.#targets = targets;
    this.services = services;
    this.#onEmpty = onEmpty;
    this.#tunnels = {
      open: (downstream, request) => new Tunnel(downstream, request, this.#bind, this.#targets, this.services),
      rejected: (from, code, detail, received) => this.rejected(from, code, detail, received),
    };
  }

  get bind(): CompiledBind {
    return this.#bind;
  }

  get frontend(): Frontend {
    return this.#bind.frontend;
  }

  /** Open connections, in any stage. */
  get connections(): number {
    return this.#live.size;
  }

  /** The port that it listens on, or that an internal bind represents; 0 = none. */
  get port(): number {
    const [port = 0] = this.#acceptors.flatMap((acceptor) => acceptor.port || []);
    return port || (this.#bind.mode === "internal" ? this.#bind.port : 0);
  }

  /** Serves tunnels to ports that no bind has. */
  get wildcard(): boolean {
    return this.#bind.mode === "internal" && this.#bind.port === 0;
  }

  /**
   * New requests see the new configuration; those in progress keep theirs. Clients of a listener whose TLS has changed are asked
   * to connect again (docs/configuration.md#certificates-of-listeners): they were negotiated and authenticated by the old
   * settings.
   */
  update(bind: CompiledBind): void {
    const { protocol } = this.#bind;
    this.#bind = bind;
    this.#series.clear();
    this.#live.each((connection, served) => this.#leaveIfChanged(connection, served));
    if (protocol !== "http" || bind.protocol === "http") return;
    this.#live.each((connection) => connection.askToReconnect?.());
  }

  #leaveIfChanged(connection: RosteredConnection, served: Served | undefined): void {
    const tls = served?.tls;
    if (tls !== undefined && this.#bind.listeners.find(tls.serverName)?.terminator !== tls.terminator)
      connection.askToReconnect?.();
  }

  // ── the listening socket and its drain (drain.ts) ──

  /** Rejects with the system's error if one of the addresses cannot be used. */
  async listen(port: number, { reusePort, unixSockets, inherited }: Sharing): Promise<void> {
    const { at: where, frontend } = this.#bind;
    const keepAliveDelay = frontend.keepalives.enabled ? frontend.keepalives.time : 0;
    const { sockets: budget, own } = this.services;
    const onConnection = (transport: Transport): TransportHandler | undefined =>
      this.#takesConnection() ? this.#admit(transport, false) : undefined;
    for (const at of bindAddresses(where, port)) {
      const options = { at, reusePort, keepAliveDelay, budget, own };
      const adopted = inherited[formatBindAddress(at)];
      for (const fd of adopted ?? []) this.#acceptors.push(Acceptor.adopt(fd, options, onConnection));
      if ((adopted?.length ?? 0) > 0 || ("path" in at && (adopted !== undefined || !unixSockets))) continue;
      try {
        this.#acceptors.push(await Acceptor.listen(options, onConnection));
      } catch (error) {
        // The sockets of other threads came from a process of another user, or without SO_REUSEPORT: they cannot be joined.
        if (adopted === undefined || codeOf(error) !== "EADDRINUSE") throw error;
      }
    }
  }

  /** From now on connections on sockets that another process has opened are accepted: the configuration is in effect. */
  begin(): void {
    for (const acceptor of this.#acceptors) acceptor.begin((error) => this.onFault(error));
  }

  /** The listening sockets, for a process that takes over. */
  get sockets(): readonly InheritedSocket[] {
    return this.#acceptors.flatMap(({ socket: { at, fd } }) =>
      fd === undefined ? [] : [{ fd, address: formatBindAddress({ mode: 0, ...at }) }],
    );
  }

  get accepted(): number {
    return this.#acceptors.reduce((sum, { accepted }) => sum + accepted, 0);
  }

  announceDrain(): void {
    this.draining = true;
    this.#live.each((connection) => connection.askToReconnect?.());
  }

  holdConnections(): void {
    for (const acceptor of this.#acceptors) acceptor.hold();
  }

  stopListening(handedOver = false): void {
    for (const acceptor of this.#acceptors) acceptor.close(handedOver);
  }

  serveHeld(): void {
    for (const acceptor of this.#acceptors) acceptor.release();
  }

  closeIdle(): void {
    this.closesIdle = true;
    this.#live.each((connection) => connection.closeIfIdle());
  }

  /** All steps at once, for a bind that the configuration no longer has. */
  drain(): void {
    this.announceDrain();
    this.stopListening();
    this.closeIdle();
  }

  /** Ends every connection at once; requests on them are logged as cut off. */
  destroy(): void {
    this.stopListening();
    this.serveHeld();
    this.#live.each((connection) => connection.terminate("the gateway shut down"));
  }

  // ── new connections (chain.ts) ──

  /** Serves the inner stream of a tunnel to this bind. `from`: addresses of its client. */
  serve(stream: ByteStream, from: Addresses): void {
    if (this.closesIdle || !this.#takesConnection()) stream.destroy();
    else Transport.over(stream, from, (transport) => this.#admit(transport, true));
  }

  /** Serves a stream of a rehearsal. `from`: addresses of its client. */
  rehearse(stream: ByteStream, from: Addresses): void {
    Transport.over(stream, from, (transport) =>
      admitKnown(arrivalOf(transport, false), this, (complete) => this.#serve(complete)),
    );
  }

  #takesConnection(): boolean {
    return this.connections < this.#bind.frontend.maxConnections && this.services.overload.admitConnection();
  }

  #admit(transport: Transport, tunnelled: boolean): TransportHandler {
    return admit(arrivalOf(transport, tunnelled), this, (complete) => this.#serve(complete));
  }

  onStageBegun(stage: RosteredConnection): void {
    this.#live.set(stage, undefined);
  }

  onStagePassed(stage: ConnectionStage): void {
    this.#live.delete(stage);
  }

  onStageFailed(stage: ConnectionStage, message: string): void {
    this.#live.delete(stage);
    this.services.accessLog.rejected({ source: clientName(stage), error: message });
    this.#recordRefused(stage, undefined, {}, 0);
    this.#checkEmpty();
  }

  onRejected(arrival: Arrival, refusal: Refusal): void {
    const { transport, listener } = arrival;
    const series = this.seriesOf(listener);
    series.connections.count++;
    series.received.count += transport.bytesRead;
    this.services.metrics.count("downstream_denied_connections_total", this.#bind.key, refusal.policy).count++;
    this.services.accessLog.rejected({ source: clientName(transport), ...refusal });
    this.#recordRefused(transport, listener, refusal, transport.bytesRead);
    ConnectionTrace.of(arrival, this.services, performance.now())?.finished(refusal.error, refusal.origin);
    transport.destroy();
    this.#checkEmpty();
  }

  #recordRefused(
    client: Pick<Addresses, "remoteAddress" | "remotePort">,
    listener: CompiledListener | undefined,
    why: Partial<Pick<Refusal, "code" | "origin" | "reason">>,
    received: number,
  ): void {
    const { recorder } = this.services;
    if (recorder === undefined) return;
    const { generation, protocol } = this.#bind;
    // Without a reason, the client has not said what it should have.
    const { reason = "InvalidRequest", code, origin } = why;
    recordConnection(
      { kind: "refused", generation, protocol, client, reason, code, origin, received, sent: 0 },
      (listener ?? this.#bind).series.placeIn(recorder),
      recorder,
    );
  }

  seriesOf(listener: CompiledListener | undefined): ConnectionSeries {
    let series = this.#series.get(listener);
    if (series === undefined) {
      const { gateway = "unknown", name = "unknown", protocol = this.#bind.protocol } = listener ?? {};
      const labels = { bind: this.#bind.key, gateway, listener: name, protocol: protocol.toLowerCase() };
      series = this.services.metrics.connection(labels);
      this.#series.set(listener, series);
    }
    return series;
  }

  #serve(arrival: Arrival): TransportHandler {
    const { transport, metadata } = arrival;
    const protocol = protocolOf(arrival, this.#bind);
    if (protocol === "tcp") {
      const connection = new TcpConnection(arrival, this, this.services);
      this.#enter(connection, arrival, undefined);
      connection.start();
      return connection;
    }
    const connection = serveHttp(transport, this, protocol === "connect" ? this.#tunnels : this, metadata);
    const { tls } = connection;
    const terminator = arrival.listener?.terminator;
    this.#enter(connection, arrival, tls && { serverName: tls.serverName, terminator });
    return connection;
  }

  #enter(connection: ServedConnection, { listener }: Arrival, tls: Served["tls"]): void {
    const served = { series: this.seriesOf(listener), tls };
    served.series.connections.count++;
    this.#live.set(connection, served);
    // The configuration may have changed during the handshake.
    this.#leaveIfChanged(connection, served);
  }

  sweep(now: number): void {
    this.#live.each((connection) => connection.sweep?.(now));
  }

  // ── requests ──

  open(downstream: Downstream, request: HttpRequest): Exchange {
    const exchange = openExchange(downstream, request, this.#bind, this.services);
    const { metadata } = downstream.connection;
    if (metadata !== undefined) exchange.policyView.requestMetadata.extauthz = metadata;
    return exchange;
  }

  rejected(from: ClientConnection, code: ErrorCode, detail: string, received: Buffer | undefined): void {
    recordUnreadable(from, { code, detail, received }, this.#bind, this.services);
  }

  onVersionChange(from: HttpConnection, to: HttpConnection): void {
    const served = this.#live.note(from);
    this.#live.delete(from);
    this.#live.set(to, served);
  }

  // ── the end of connections ──

  onConnectionClose(connection: HttpConnection | TcpConnection): void {
    const series = this.#live.note(connection)?.series;
    this.#live.delete(connection);
    if (series !== undefined) {
      series.received.count += connection.bytesReceived;
      series.sent.count += connection.bytesSent;
    }
    this.#checkEmpty();
  }

  onFault(error: unknown): void {
    this.services.log.error("a connection failed inside the gateway", { error: asError(error) });
  }

  /** Open connections with their activity, for the task dump. */
  tasks(): unknown[] {
    return this.#live.items().map((connection) => ({
      client: clientName(connection),
      ...connection.activity,
    }));
  }

  #checkEmpty(): void {
    if (this.connections === 0) this.#onEmpty();
  }
}

function arrivalOf(transport: Transport, tunnelled: boolean): Arrival {
  return { transport, tunnelled, listener: undefined, serverName: "", metadata: undefined };
}
