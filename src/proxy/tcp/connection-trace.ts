/** The trace of a TCP connection. */
import type { Origin } from "../../base/origin.ts";
import type { Addresses } from "../../net/addresses.ts";
import type { RequestState, TraceMessage } from "../../trace/events.ts";
import { severityOf, type TraceSink } from "../../trace/tracer.ts";
import type { CompiledBackend, CompiledListener, CompiledTcpRoute } from "../compile/compiled.ts";
import type { Services } from "../services/services.ts";
import { ofBackend } from "../trace/request-trace.ts";
import { StreamProgress } from "../trace/stream-progress.ts";

/** What a trace shows of a connection. */
interface Traced {
  readonly transport: Addresses;
  readonly listener: Pick<CompiledListener, "protocol"> | undefined;
  /** Name of the TLS handshake, `` without one. */
  readonly serverName: string;
}

export function protocolOfConnection(listener: Traced["listener"]): "tcp" | "tls" {
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
 * The trace of one TCP connection, or of one whose TLS passes through: which route and endpoint it got, what it carries while it
 * lasts, and how it ended. Exists only while a watcher follows the connection.
 */
export class ConnectionTrace {
  readonly progress: StreamProgress;
  readonly #tracer: TraceSink;
  #callStart: number | undefined;

  /** The trace of a connection that a watcher claims, otherwise undefined. `startedAt`: `performance.now()` ms. */
  static of(
    connection: Traced,
    services: Pick<Services, "watchers" | "env">,
    startedAt: number,
  ): ConnectionTrace | undefined {
    const tracer = services.watchers.claimConnection(startedAt);
    return tracer && new ConnectionTrace(tracer, connection, services.env);
  }

  private constructor(tracer: TraceSink, { transport, listener, serverName }: Traced, env: RequestState["env"]) {
    this.#tracer = tracer;
    this.progress = new StreamProgress(tracer);
    const { remoteAddress, remotePort, rawAddress, rawPort, localAddress, localPort } = transport;
    const requestState: RequestState = {
      source: { address: remoteAddress, port: remotePort, rawAddress, rawPort },
      destination: { address: localAddress, port: localPort, ...(serverName !== "" && { hostname: serverName }) },
      env,
    };
    tracer.emit("info", { type: "requestStarted", protocol: protocolOfConnection(listener) });
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
