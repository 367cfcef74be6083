/** The trace of a TCP connection, or of a session of datagrams. */
import type { Origin } from "../../base/origin.ts";
import type { Addresses } from "../../net/addresses.ts";
import type { RequestState, TraceMessage } from "../../trace/events.ts";
import { severityOf, type TraceSink } from "../../trace/tracer.ts";
import type { CompiledBackend, CompiledListener, CompiledTcpRoute } from "../compile/compiled.ts";
import type { Services } from "../services/services.ts";
import { ofBackend } from "../trace/request-trace.ts";
import { StreamProgress } from "../trace/stream-progress.ts";

/** What a trace shows of a TCP connection. */
interface TracedConnection {
  readonly transport: Addresses;
  readonly listener: Pick<CompiledListener, "protocol"> | undefined;
  /** Name of the TLS handshake, `` without one. */
  readonly serverName: string;
}

/** What a trace shows at the start. */
interface Arrival {
  readonly protocol: "tcp" | "tls" | "udp";
  readonly addresses: Addresses;
  readonly serverName: string;
}

export function protocolOfConnection(listener: TracedConnection["listener"]): "tcp" | "tls" {
  return listener?.protocol === "TLS" || listener?.protocol === "HTTPS" ? "tls" : "tcp";
}

/** The route of a connection, or of a session of datagrams; undefined: none matches. */
export function routeOfConnection(
  route: CompiledTcpRoute | undefined,
  among: readonly CompiledTcpRoute[],
): TraceMessage {
  const { label, origin } = route ?? {};
  return {
    type: "routeSelection",
    selectedRoute: label ?? null,
    evaluatedRoutes: among.map((each) => each.label),
    candidates:
      label === undefined ? [] : [{ route: label, matched: true, reason: "selected", ...(origin && { origin }) }],
  };
}

/**
 * The trace of one TCP connection, of one whose TLS passes through, or of one session of datagrams: which route and endpoint it got, what it carries while it
 * lasts, and how it ended. Exists only while a watcher follows the connection.
 */
export class ConnectionTrace {
  readonly progress: StreamProgress;
  readonly #tracer: TraceSink;
  #callStart: number | undefined;

  /** The trace of a connection that a watcher claims, otherwise undefined. `startedAt`: `performance.now()` ms. */
  static of(
    { transport: addresses, listener, serverName }: TracedConnection,
    { watchers, env }: Pick<Services, "watchers" | "env">,
    startedAt: number,
  ): ConnectionTrace | undefined {
    const tracer = watchers.claimConnection(startedAt);
    const protocol = protocolOfConnection(listener);
    return tracer && new ConnectionTrace(tracer, { protocol, addresses, serverName }, env);
  }

  /** The trace of a session of datagrams that someone follows, otherwise undefined. */
  static ofSession(
    addresses: Addresses,
    { watchers, env }: Pick<Services, "watchers" | "env">,
    startedAt: number,
  ): ConnectionTrace | undefined {
    const tracer = watchers.followSession(startedAt);
    return tracer && new ConnectionTrace(tracer, { protocol: "udp", addresses, serverName: "" }, env);
  }

  private constructor(tracer: TraceSink, { protocol, addresses, serverName }: Arrival, env: RequestState["env"]) {
    this.#tracer = tracer;
    this.progress = new StreamProgress(tracer);
    const { remoteAddress, remotePort, rawAddress, rawPort, localAddress, localPort } = addresses;
    const requestState: RequestState = {
      source: { address: remoteAddress, port: remotePort, rawAddress, rawPort },
      destination: { address: localAddress, port: localPort, ...(serverName !== "" && { hostname: serverName }) },
      env,
    };
    tracer.emit("info", { type: "requestStarted", protocol });
    tracer.emit("info", { type: "requestSnapshot", stage: "initial request", requestState });
  }

  routeSelected(route: CompiledTcpRoute | undefined, among: readonly CompiledTcpRoute[]): void {
    this.#tracer.emit(route === undefined ? "error" : "info", routeOfConnection(route, among));
  }

  callStarted(target: string, backend: CompiledBackend | undefined): void {
    this.#callStart = this.#tracer.now();
    this.#tracer.emit("info", { type: "backendCallStart", target, ...ofBackend(backend, target) });
  }

  /** The connection to the backend is established, or has failed with `error`. */
  callEnded(error: string | null): void {
    if (this.#callStart === undefined) return;
    this.#tracer.emit(severityOf(null, error), { type: "backendCallResult", status: null, error }, this.#callStart);
    this.#callStart = undefined;
    if (error === null) this.progress.begin();
  }

  /** The connection has ended; no event follows. `origin`: of the error. */
  finished(error: string | null, origin: Origin | undefined): void {
    this.callEnded(error);
    this.progress.end();
    this.#tracer.emit(severityOf(null, error), {
      type: "requestFinished",
      status: null,
      error,
      ...(origin !== undefined && { origin }),
    });
    this.#tracer.finish();
  }
}
