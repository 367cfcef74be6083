/** Traces as log lines, at the levels `debug` and `trace`. */
import type { LogFields, Logger, LogOutput } from "../../base/log.ts";
import type { LogFilter, LogLevel } from "../../base/log-filter.ts";
import type { TraceMessage } from "../../trace/events.ts";
import type { TraceOptions, TraceSink } from "../../trace/tracer.ts";

/** Snapshots go to the log without bodies, and nothing in it is revealed. */
const OPTIONS: TraceOptions = { reveal: false, maxBodyBytes: 0 };

/** Writes the trace events of requests as log lines, at the levels `debug` and `trace`. One per thread. */
export class TraceLog {
  readonly #output: LogOutput;
  readonly #loggers: Readonly<Record<"proxy" | "match" | "policies" | "upstream", Logger>>;
  #filter: LogFilter | undefined;
  #enabled = false;

  constructor(output: LogOutput) {
    this.#output = output;
    this.#loggers = {
      proxy: output.logger("proxy"),
      match: output.logger("proxy::match"),
      policies: output.logger("policies"),
      upstream: output.logger("upstream"),
    };
  }

  /** Whether any of these lines would be written. Costs a comparison until the filter changes. */
  get enabled(): boolean {
    if (this.#output.filter !== this.#filter) {
      this.#filter = this.#output.filter;
      this.#enabled = Object.values(this.#loggers).some((logger) => logger.enabled("debug"));
    }
    return this.#enabled;
  }

  /** The sink of one request's events; every line has the `id`. */
  begin(id: string, start: number): TraceSink {
    const { proxy } = this.#loggers;
    return {
      options: OPTIONS,
      snapshots: proxy.enabled("trace"),
      now: () => Math.max(0, Math.round((performance.now() - start) * 1000)),
      evaluated: () => {},
      emit: (_severity, message, _start, scope = []) => this.#write(id, message, scope),
      finish: () => {},
    };
  }

  #write(id: string, message: TraceMessage, scope: readonly string[]): void {
    const line = lineOf(message);
    if (line === undefined) return;
    const { module, level, text, fields } = line;
    const logger = this.#loggers[module];
    if (!logger.enabled(level)) return;
    logger.log(level, text, { request: id, ...(scope.length > 0 && { scope: scope.join(">") }), ...fields });
  }
}

interface Line {
  readonly module: "proxy" | "match" | "policies" | "upstream";
  readonly level: LogLevel;
  readonly text: string;
  readonly fields?: LogFields;
}

/** Bodies are left out. */
function lineOf(message: TraceMessage): Line | undefined {
  switch (message.type) {
    case "requestSnapshot":
    case "responseSnapshot": {
      const fields = { stage: message.stage, state: JSON.stringify(message.requestState) };
      return { module: "proxy", level: "trace", text: "snapshot", fields };
    }
    case "routeSelection": {
      const { selectedRoute: route, evaluatedRoutes, omittedRoutes = 0, candidates, listeners } = message;
      if (listeners !== undefined)
        return { module: "match", level: "debug", text: "no listener", fields: { reason: listeners[0]?.reason } };
      const nearest = route === null ? candidates[0]?.reason : undefined;
      const fields = { route, evaluated: evaluatedRoutes.length + omittedRoutes, nearest };
      return { module: "match", level: "debug", text: route === null ? "no route" : "route", fields };
    }
    case "policySelection": {
      const names = Object.keys(message.effectivePolicy).filter((name) => message.effectivePolicy[name] !== null);
      const fields = { phase: message.phase, policies: names.join(",") };
      return { module: "policies", level: "trace", text: "effective", fields };
    }
    case "policy": {
      const { kind, result } = message;
      const text = result.type === "apply" ? `${kind}: ${result.details}` : `${kind} skipped: ${result.reason}`;
      return { module: "policies", level: "debug", text };
    }
    case "authorizationResult": {
      const matched = message.rules.filter((rule) => rule.matched).map(({ mode, name }) => `${mode} ${name}`);
      const inputs = JSON.stringify(Object.assign({}, ...message.rules.map((rule) => rule.inputs)));
      const fields = { matched: matched.join("; "), inputs };
      return { module: "policies", level: "debug", text: `authorization: ${message.result}`, fields };
    }
    case "acmeChallenge":
      return { module: "proxy", level: "debug", text: "acme challenge", fields: { result: message.result } };
    case "traceSampling":
      return { module: "proxy", level: "debug", text: "sampling", fields: { decision: message.decision } };
    case "backendCallStart":
      return { module: "upstream", level: "debug", text: "call", fields: { target: message.target } };
    case "backendCallResult": {
      const { status, error, timing: { reusedConnection, ...steps } = {} } = message;
      const pool = reusedConnection === undefined ? undefined : reusedConnection ? "hit" : "miss";
      const fields = { status, error: error ?? undefined, pool, ...steps };
      return { module: "upstream", level: "debug", text: error === null ? "response" : "failure", fields };
    }
    case "requestFinished": {
      const { status, error, grpc } = message;
      const fields = { status, error: error ?? undefined, "grpc.status": grpc?.status ?? undefined };
      return { module: "proxy", level: "debug", text: "finished", fields };
    }
    default:
      return undefined;
  }
}
