/** The trace of a request, redacted. */
import type { Origin } from "../../base/origin.ts";
import type { Names } from "../../base/sensitive-names.ts";
import { Budget, type CelValue, type EvaluationObserver, FINDINGS, type Findings, toJson } from "../../cel/index.ts";
import { MessageCounter } from "../../http/grpc-frames.ts";
import { isGrpc } from "../../http/grpc-reply.ts";
import { getHeader, type HeaderList, type HttpRequest, type HttpResponse } from "../../http/message/message.ts";
import type { Downstream } from "../../http/stream.ts";
import { backendName } from "../../ir/backend-name.ts";
import { traceKeyOf } from "../../policies/compile.ts";
import type { PolicyEnvironment } from "../../policies/contract/deps.ts";
import type { RequestMetadata } from "../../policies/contract/types.ts";
import { kindsOf } from "../../policies/merge.ts";
import { BodyCapture } from "../../trace/body-capture.ts";
import type {
  CallTiming,
  Candidate,
  GrpcEnd,
  Phase,
  RequestState,
  SamplingDecision,
  TraceMessage,
} from "../../trace/events.ts";
import { RequestSecrets } from "../../trace/secrets.ts";
import { allSinks, type Outcome, severityOf, type TraceSink } from "../../trace/tracer.ts";
import type { Balancer } from "../../upstream/balancers/balancer.ts";
import type { ConnectTimes } from "../../upstream/connections/connect-attempt.ts";
import type { Endpoint } from "../../upstream/endpoints/endpoint.ts";
import type { CompiledBackend, CompiledBind, CompiledListener, CompiledRoute } from "../compile/compiled.ts";
import type { Selected } from "../match/entry.ts";
import type { Explanation } from "../match/explain.ts";
import type { ListenerTable } from "../match/hosts.ts";
import { describeBecause, describeCandidate, type RouteCandidate } from "../match/reason.ts";
import type { Services } from "../services/services.ts";
import { sensitiveNames } from "../variables/exchange-variables.ts";
import { HEALTH } from "./decisions.ts";
import { PolicyEvents } from "./policy-events.ts";
import { StreamMessages } from "./stream-messages.ts";
import { StreamProgress } from "./stream-progress.ts";

/** Which backend has an endpoint, if it has another name. */
export function ofBackend(
  backend: Pick<CompiledBackend, "key" | "target"> | undefined,
  endpoint: string,
): { readonly backend?: string } {
  const name = backend && backendName(backend);
  return name === undefined || name === endpoint ? {} : { backend: name };
}

/** Limit of the listeners that are shown if none matches a request. */
const MAX_LISTENERS = 100;

/** What a trace reads of the exchange it follows. */
interface TracedExchange {
  readonly request: HttpRequest;
  readonly downstream: Downstream;
  readonly services: Pick<Services, "sensitive" | "env" | "watchers" | "traceLog">;
  readonly bind: Pick<CompiledBind, "provenance"> & { readonly policies: Pick<PolicyEnvironment, "credentials"> };
  readonly policyState: { readonly found: RequestMetadata };
  readonly selected: {
    readonly listener: Pick<CompiledListener, "key"> | undefined;
    readonly parents: readonly CompiledRoute[];
    readonly route: CompiledRoute | undefined;
    readonly backend: CompiledBackend | undefined;
  };
  readonly responseSide: { readonly tunnel: boolean; readonly head: HttpResponse | undefined };
  readonly requestId: string | undefined;
  /** `performance.now()` ms; 0 = not yet. */
  readonly startedAt: number;
  readonly call: { readonly startedAt: number; readonly answeredAt: number } | undefined;
}

/**
 * The trace of one exchange: its events in the order of docs/lifecycle.md, for a watcher, for the log at level `debug`, or for
 * both. It exists only for traced requests; others pay one check for undefined per event. Secrets are redacted here, before an event
 * leaves the worker.
 */
export class RequestTrace extends PolicyEvents {
  /** Headers (lower-case) whose values are secrets, as are the values that the configuration compares them with. */
  readonly secretHeaders: Names;
  /** Gets the values of expressions; the log shows none of them. */
  readonly observer: EvaluationObserver | undefined;
  readonly #tracer: TraceSink;
  readonly #exchange: TracedExchange;
  readonly #secrets: RequestSecrets;
  readonly #startTime: string;
  readonly #progress: StreamProgress | undefined;
  readonly #messages: StreamMessages | undefined;
  #callStart = 0;
  #timing: CallTiming | undefined;
  /** `performance.now()` ms since when the call has a connection; 0 = it has none. */
  #connectedAt = 0;
  #called = false;
  #requestBody: BodyCapture | undefined;
  #responseBody: BodyCapture | undefined;
  readonly #grpc: GrpcTrace | undefined;

  /** The trace of a request that a watcher claims or that the log explains, otherwise undefined. */
  static of(exchange: TracedExchange): RequestTrace | undefined {
    const { requestId, downstream, services, startedAt } = exchange;
    const tracer = services.watchers.armed ? claimed(exchange) : undefined;
    const { traceLog } = services;
    // Secrets that a watcher has asked to reveal must not reach the log.
    if (!traceLog.enabled || tracer?.options.reveal === true) return tracer && new RequestTrace(tracer, exchange, true);
    // Without request ids, the client's address and port identify the request in the log.
    const id = requestId ?? downstream.connection.name;
    const log = traceLog.begin(id, startedAt);
    return new RequestTrace(tracer === undefined ? log : allSinks(tracer, log), exchange, tracer !== undefined);
  }

  /** `watched`: for a watcher, not for the log alone. */
  private constructor(tracer: TraceSink, exchange: TracedExchange, watched: boolean) {
    const { credentials } = exchange.bind.policies;
    const headers = sensitiveNames(exchange);
    const parameters = credentials.parametersAt(exchange.request.path);
    const secrets = new RequestSecrets(tracer.options.reveal, headers, parameters);
    super(tracer, [], secrets);
    this.#tracer = tracer;
    if (watched) {
      this.#progress = new StreamProgress(tracer);
      this.observer = { evaluated: (text, seen) => tracer.evaluated({ text, ...secrets.observed(seen) }) };
    }
    this.#exchange = exchange;
    this.#secrets = secrets;
    this.secretHeaders = headers;
    if (tracer.options.messages === true) this.#messages = new StreamMessages(tracer, exchange);
    this.#startTime = new Date().toISOString();
    this.#grpc = grpcTraceOf(exchange.request.headers);
    secrets.remember(exchange.request.headers);
    const { requestId } = exchange;
    tracer.emit("info", { type: "requestStarted", ...(requestId !== undefined && { requestId }) });
  }

  /** The request at this stage, with what policies have established. */
  requestSnapshot(stage: string): void {
    if (!this.#tracer.snapshots) return;
    const { request, downstream, services, selected } = this.#exchange;
    const { backend } = selected;
    const pathAndQuery = this.#secrets.target(request.path + request.search);
    const state: RequestState = {
      request: {
        method: request.method,
        uri: `${request.scheme}://${request.authority}${pathAndQuery}`,
        path: this.#secrets.target(request.path),
        pathAndQuery,
        host: request.authority,
        scheme: request.scheme,
        version: request.version,
        headers: this.#secrets.headers(request.headers),
        startTime: this.#startTime,
      },
      source: {
        address: downstream.connection.remoteAddress,
        port: downstream.connection.remotePort,
        rawAddress: downstream.connection.rawAddress,
        rawPort: downstream.connection.rawPort,
      },
      destination: {
        address: downstream.connection.localAddress,
        port: downstream.connection.localPort,
        ...(downstream.connection.tls !== undefined && { hostname: downstream.connection.tls.serverName }),
      },
      ...this.#requestMetadata(),
      ...(stage === "final request" &&
        backend !== undefined && {
          backend: {
            name: backend.key,
            type: backend.target.type === "unix" ? "static" : backend.target.type,
            protocol: "http",
          },
        }),
      env: services.env,
    };
    this.#tracer.emit("info", { type: "requestSnapshot", stage, requestState: state });
  }

  /** What policies have established so far. The token itself and cookies of `oidc` are not variables, and not shown. */
  #requestMetadata(): Findings {
    const shown: Record<string, unknown> = {};
    for (const name of FINDINGS) {
      const value = this.#exchange.policyState.found[name];
      if (value !== undefined) shown[name] = this.#secrets.data(toData(value));
    }
    return shown;
  }

  /** The response at this stage; `raw response` also has the durations so far. */
  responseSnapshot(stage: string, response: HttpResponse): void {
    if (!this.#tracer.snapshots) return;
    const { services, startedAt, call } = this.#exchange;
    const state: RequestState = {
      response: { code: response.status, headers: this.#secrets.headers(response.headers) },
      ...(stage === "raw response" &&
        call !== undefined && {
          proxy: {
            requestProcessingDuration: seconds(call.startedAt - startedAt),
            upstreamDuration: seconds(call.answeredAt - call.startedAt),
          },
        }),
      env: services.env,
    };
    this.#tracer.emit("info", { type: "responseSnapshot", stage, requestState: state });
  }

  /** Whether anybody wants to know why the other routes were not selected. */
  get wantsCandidates(): boolean {
    return this.#tracer.options.candidates ?? true;
  }

  /** See `TraceSink`. */
  routed(label: string | undefined): void {
    this.#tracer.routed?.(label);
  }

  /** The chosen route alone; undefined: none matches. */
  routeSelected(selected: Selected<CompiledRoute> | undefined, group: string | undefined): void {
    const reason = { clause: "selected" } as const;
    const candidates = selected === undefined ? [] : [{ route: selected.route, matched: true, reason, misses: 0 }];
    this.routeSelection({ selected, evaluatedRoutes: [], candidates, omitted: 0 }, group);
  }

  /** The chosen route with the reason for each other one; an error if no route matches. `group`: a route has delegated to it. */
  routeSelection(
    { selected, evaluatedRoutes, candidates, omitted }: Explanation<CompiledRoute>,
    group: string | undefined,
  ): void {
    const origin = group === undefined ? undefined : this.#exchange.bind.provenance.originOfGroup(group);
    this.#tracer.emit(selected === undefined ? "error" : "info", {
      type: "routeSelection",
      selectedRoute: selected?.route.key ?? null,
      evaluatedRoutes,
      candidates: candidates.map((candidate) => this.#candidate(candidate)),
      ...(omitted > 0 && { omittedRoutes: omitted }),
      ...(group !== undefined && { group: { name: group, ...(origin !== undefined && { origin }) } }),
    });
  }

  #candidate(candidate: RouteCandidate<CompiledRoute>): Candidate {
    const { route, matched, reason } = candidate;
    const origin = this.#tracer.snapshots ? this.#exchange.bind.provenance.originOf(route) : undefined;
    const because = reason.clause === "precedence" ? describeBecause(reason.because) : undefined;
    const text = describeCandidate(candidate, this.secretHeaders);
    return {
      route: route.key,
      ...(route.rule !== undefined && { rule: route.rule }),
      matched,
      reason: text,
      ...(because !== undefined && { because }),
      ...(origin !== undefined && { origin }),
    };
  }

  /** No listener matches `host`, so there are no routes to compare. */
  noListener(host: string, listeners: ListenerTable<CompiledListener>["entries"]): void {
    const shown = listeners.slice(0, MAX_LISTENERS).map(({ hostname, value }) => {
      const origin = this.#exchange.bind.provenance.originOfListener(value.key);
      const reason = `host: ${host} does not match ${hostname}`;
      return { listener: value.key, name: value.name, reason, ...(origin !== undefined && { origin }) };
    });
    const none = { selectedRoute: null, evaluatedRoutes: [], candidates: [] };
    this.#tracer.emit("error", { type: "routeSelection", ...none, listeners: shown });
  }

  /** Whether the gateway answers a challenge of an ACME server itself. */
  acmeChallenge(result: Extract<TraceMessage, { type: "acmeChallenge" }>["result"]): void {
    this.#tracer.emit("info", { type: "acmeChallenge", result });
  }

  traceSampling(decision: SamplingDecision): void {
    this.#tracer.emit("info", { type: "traceSampling", decision });
  }

  /** The policies in effect for a phase, before any of them runs. */
  policySelection(phase: Phase, effectivePolicy: Readonly<Record<string, unknown>>): void {
    const origins = this.#tracer.snapshots ? this.#origins(phase) : {};
    this.#tracer.emit("info", {
      type: "policySelection",
      phase,
      effectivePolicy,
      ...(Object.keys(origins).length > 0 && { origins }),
    });
  }

  /** Under the names of `effectivePolicy`. */
  #origins(phase: Phase): Readonly<Record<string, readonly Origin[]>> {
    const { bind, selected } = this.#exchange;
    const found = bind.provenance.ofPhase(phase, selected);
    return Object.fromEntries(kindsOf(found).map((kind) => [traceKeyOf(kind), found[kind] ?? []]));
  }

  /** An attempt begins; its result has the time since then. */
  callStarted(target: string): void {
    this.#called = true;
    this.#timing = undefined;
    this.#connectedAt = 0;
    this.#callStart = this.#tracer.now();
    this.#tracer.emit("info", {
      type: "backendCallStart",
      target,
      ...ofBackend(this.#exchange.selected.backend, target),
    });
  }

  /** The call has a connection. */
  connected({ served, times }: { readonly served: number; readonly times: ConnectTimes }): void {
    this.#timing = { reusedConnection: served > 0, ...(served === 0 && timingOf(times)) };
    this.#connectedAt = performance.now();
    this.#progress?.begin();
  }

  /** The connection has failed; `times` says how long each step took. */
  notConnected(times: ConnectTimes): void {
    this.#timing = { reusedConnection: false, ...timingOf(times) };
  }

  /** Reports the endpoints that the balancer has noted as evicted, `chosen` among them if there was no better one. */
  endpointChosen(chosen: Endpoint | undefined, evicted: readonly Endpoint[], balancer: Balancer): void {
    if (evicted.length === 0 || chosen === undefined) return;
    const now = performance.now();
    const details = {
      endpoint: chosen.pool.name,
      leftOut: evicted.filter((each) => each !== chosen).map((each) => `${each.pool.name}: ${each.whyLeftOut(now)}`),
    };
    if (evicted.includes(chosen))
      this.report(HEALTH, { code: "noneHealthy", ...details, noneHealthy: chosen.whyLeftOut(now) });
    else this.report(HEALTH, { code: "leftOut", ...details, order: balancer.whyBeyond?.(chosen) });
  }

  /** The outcome of the call has evicted its endpoint. */
  evicted({ pool, evictedUntil, consecutiveFailures }: Endpoint): void {
    const evictedFor = evictedUntil - performance.now();
    this.report(HEALTH, { code: "evicted", endpoint: pool.name, evictedFor, consecutiveFailures });
  }

  requestBody(buffer: Buffer, from: number, to: number): void {
    this.#requestBody ??= new BodyCapture(this.#tracer.options.maxBodyBytes);
    this.#requestBody.add(buffer, from, to);
    this.#progress?.received({ length: to - from });
    this.#grpc?.request?.add(buffer.subarray(from, to));
    this.#messages?.received(buffer.subarray(from, to));
  }

  responseBody(buffer: Buffer, from: number, to: number): void {
    this.#responseBody ??= new BodyCapture(this.#tracer.options.maxBodyBytes);
    this.#responseBody.add(buffer, from, to);
    this.#progress?.sent({ length: to - from });
    this.#grpc?.response?.add(buffer.subarray(from, to));
    this.#messages?.sent(buffer.subarray(from, to));
  }

  /** The client has sent its whole body; the backend may have responded before. */
  requestBodyEnded(): void {
    if (this.#exchange.downstream.requestLength === 0) return;
    this.#bodySnapshot("final request", this.#requestBody);
    this.#requestBody = undefined;
  }

  /** The upstream has responded or failed. Does nothing without a current call. */
  callEnded(status: number | null, error: string | null): void {
    if (!this.#called) return;
    this.#called = false;
    if (error !== null) this.#partialRequestBody();
    const answered = status !== null && this.#connectedAt !== 0;
    const timing = this.#timing && {
      ...this.#timing,
      ...(answered && { firstByte: seconds(performance.now() - this.#connectedAt) }),
    };
    const message = { type: "backendCallResult", status, error, ...(timing !== undefined && { timing }) } as const;
    this.#tracer.emit(severityOf(status, error), message, this.#callStart);
  }

  /** The last event. `origin`: of `error`; `outcome`: what readers choose requests by. A body or call that was cut short is shown up to that point. */
  finished(
    status: number | null,
    error: string | null,
    origin: Origin | undefined,
    responseHasBody: boolean,
    grpcStatus: number | undefined,
    outcome: Outcome,
  ): void {
    this.callEnded(null, error);
    this.#progress?.end();
    this.#messages?.end();
    this.#partialRequestBody();
    if (responseHasBody) this.#bodySnapshot("response", this.#responseBody);
    const grpc = this.#grpcEnd(grpcStatus);
    const severity = severityOf(status, error);
    this.#tracer.emit(severity === "info" && (grpc?.status ?? 0) !== 0 ? "warn" : severity, {
      type: "requestFinished",
      status,
      error,
      ...(origin !== undefined && { origin }),
      ...(grpc !== undefined && { grpc }),
    });
    this.#tracer.finish(outcome);
  }

  #grpcEnd(status: number | undefined): GrpcEnd | undefined {
    if (this.#grpc === undefined) return undefined;
    const { request, response } = this.#grpc;
    return {
      status: status ?? null,
      ...(request !== undefined && { requestMessages: request.count }),
      ...(response !== undefined && { responseMessages: response.count }),
    };
  }

  /** The sent part of a body that was cut off. */
  #partialRequestBody(): void {
    if (this.#requestBody !== undefined) this.requestBodyEnded();
  }

  #bodySnapshot(stage: "final request" | "response", capture: BodyCapture | undefined): void {
    const body = capture?.base64() ?? "";
    this.#tracer.emit("info", {
      type: "bodySnapshot",
      stage,
      body,
      ...(capture?.truncated === true && { truncated: true }),
    });
  }
}

/** Counts the messages of a gRPC call. */
interface GrpcTrace {
  readonly request?: MessageCounter;
  readonly response?: MessageCounter;
}

/** undefined = not a gRPC call. gRPC-Web is excluded: its frames differ, or are encoded in base64. */
function grpcTraceOf(headers: HeaderList): GrpcTrace | undefined {
  if (isGrpc(headers)) return { request: new MessageCounter(), response: new MessageCounter() };
  return getHeader(headers, "content-type")?.startsWith("application/grpc-web") === true ? {} : undefined;
}

function timingOf({ dns, connect, tls }: ConnectTimes): Partial<CallTiming> {
  return {
    ...(dns !== undefined && { dns: seconds(dns) }),
    ...(connect !== undefined && { connect: seconds(connect) }),
    ...(tls !== undefined && { tls: seconds(tls) }),
  };
}

/** Values of expressions as JSON data; they may be larger than what expressions themselves may convert. */
function toData(value: unknown): unknown {
  try {
    return toJson(value as CelValue, new Budget());
  } catch {
    return "<too large to show>";
  }
}

function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(9)}s`;
}

// Separate, because its closure would cost every request an allocation.
function claimed(exchange: TracedExchange): TraceSink | undefined {
  const { request, downstream, services, startedAt, bind } = exchange;
  const secretsOf = (): RequestSecrets =>
    new RequestSecrets(false, sensitiveNames(exchange), bind.policies.credentials.parametersAt(request.path));
  return services.watchers.claim(request, downstream, startedAt, secretsOf);
}
