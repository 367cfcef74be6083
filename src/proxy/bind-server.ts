import { asError } from "../base/errors.ts";
import { formatHostPort } from "../base/listen-address.ts";
import type { Sweeper } from "../base/sweeper.ts";
import type { HttpRequest } from "../http/message.ts";
import { type ConnectionHost, ServerConnection } from "../http/server/connection.ts";
import type { Downstream, StreamAcceptor } from "../http/stream.ts";
import { Acceptor, type Transport, type TransportHandler } from "../http/transport.ts";
import type { Frontend } from "../ir/ir.ts";
import type { ConnectionSeries } from "../telemetry/metrics.ts";
import type { CompiledBind } from "./compiled.ts";
import { Exchange } from "./exchange.ts";
import type { Services } from "./services.ts";

/** One listening port of this thread and its connections; outlives configurations that keep the port. */
export class BindServer implements ConnectionHost, StreamAcceptor {
  readonly #services: Services;
  readonly #sweeper: Sweeper;
  readonly #series: ConnectionSeries;
  readonly #connections = new Map<ServerConnection, Exchange | undefined>();
  readonly #onEmpty: () => void;
  #acceptor: Acceptor | undefined;
  #bind: CompiledBind;
  draining = false;

  constructor(bind: CompiledBind, services: Services, sweeper: Sweeper, onEmpty: () => void) {
    this.#bind = bind;
    this.#services = services;
    this.#sweeper = sweeper;
    this.#onEmpty = onEmpty;
    const labels = { bind: bind.key, gateway: "unknown", listener: "unknown", protocol: "http" };
    this.#series = services.metrics.connection(labels);
  }

  get frontend(): Frontend {
    return this.#bind.frontend;
  }

  get acceptor(): StreamAcceptor {
    return this;
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Rejects with the system's error when the port cannot be had. */
  async listen(port: number, reusePort: boolean): Promise<void> {
    const { keepalives } = this.#bind.frontend;
    this.#acceptor = await Acceptor.listen(
      { host: this.#bind.host, port, reusePort, keepAliveDelay: keepalives.enabled ? keepalives.time : 0 },
      (transport) => this.#accept(transport),
    );
  }

  get port(): number {
    return this.#acceptor?.port ?? 0;
  }

  /** Requests from now on see the new configuration; those under way keep theirs. */
  update(bind: CompiledBind): void {
    this.#bind = bind;
  }

  /** Stops accepting; idle connections close, busy ones after their response. */
  drain(): void {
    this.draining = true;
    this.#acceptor?.close();
    this.#acceptor = undefined;
    for (const connection of this.#connections.keys()) connection.drain();
  }

  /** Ends every connection at once; requests under way are accounted for as cut. */
  destroy(): void {
    this.#acceptor?.close();
    for (const [connection, exchange] of this.#connections) {
      connection.abort();
      exchange?.onClientGone("TG_CLIENT_GONE", "the gateway shut down before the request was complete");
    }
  }

  open(downstream: Downstream, request: HttpRequest): Exchange {
    const exchange = new Exchange(downstream, request, this.#bind, this.#services);
    this.#connections.set(downstream as ServerConnection, exchange);
    return exchange;
  }

  refused(downstream: Downstream, status: number, detail: string): void {
    const series = this.#bind.series.get("unknown", status, "InvalidRequest");
    this.#services.metrics.requests.count(series, 0, 0, 0);
    const source = formatHostPort(downstream.remoteAddress, downstream.remotePort);
    this.#services.accessLog.info("refused", { "src.addr": source, "http.status": status, error: detail });
  }

  onConnectionClose(connection: ServerConnection): void {
    this.#connections.delete(connection);
    this.#sweeper.delete(connection);
    this.#series.received += connection.bytesReceived;
    this.#series.sent += connection.bytesSent;
    if (this.#connections.size === 0) this.#onEmpty();
  }

  onFault(error: unknown): void {
    this.#services.log.error("a connection failed inside the gateway", { error: asError(error) });
  }

  /** Live connections with what they do, for the task dump. */
  tasks(): unknown[] {
    return [...this.#connections].map(([connection, exchange]) => ({
      client: formatHostPort(connection.remoteAddress, connection.remotePort),
      ...connection.activity,
      ...(exchange !== undefined && !exchange.over && { exchange: exchange.activity }),
    }));
  }

  #accept(transport: Transport): TransportHandler | undefined {
    if (this.#connections.size >= this.#bind.frontend.maxConnections) return undefined;
    const connection = new ServerConnection(transport, this);
    this.#connections.set(connection, undefined);
    this.#sweeper.add(connection);
    this.#series.connections++;
    return connection;
  }
}
