/** The trace of a TCP connection. */
import type { RequestState, TraceMessage } from "../../trace/events.ts";
import { severityOf, type Tracer } from "../../trace/tracer.ts";
import type { CompiledBackend, CompiledTcpRoute } from "../compile/compiled.ts";
import { ofBackend } from "../trace/request-trace.ts";
import { StreamProgress } from "../trace/stream-progress.ts";

/** What a trace shows of a connection. */
type ConnectionState = Required<Pick<RequestState, "source" | "destination" | "env">>;

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
  readonly #tracer: Tracer;
  #callStart: number | undefined;

  constructor(tracer: Tracer, protocol: "tcp" | "tls", state: ConnectionState) {
    this.#tracer = tracer;
    this.progress = new StreamProgress(tracer);
    tracer.emit("info", { type: "requestStarted", protocol });
    tracer.emit("info", { type: "requestSnapshot", stage: "initial request", requestState: state });
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

  /** The connection has ended; no event follows. */
  finished(error: string | null): void {
    this.callEnded(error);
    this.progress.end();
    this.#tracer.emit(severityOf(null, error), { type: "requestFinished", status: null, error });
    this.#tracer.finish();
  }
}
