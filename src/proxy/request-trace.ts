import type { HttpRequest, HttpResponse } from "../http/message.ts";
import type { Downstream } from "../http/stream.ts";
import type { PolicyEnvironment } from "../policies/deps.ts";
import { BodyCapture } from "../trace/body-capture.ts";
import type { Phase, RequestState, SamplingDecision } from "../trace/events.ts";
import { shownHeaders, shownSearch } from "../trace/redaction.ts";
import { severityOf, type Tracer } from "../trace/tracer.ts";
import type { CompiledBackend, CompiledRoute } from "./compiled.ts";
import type { Explanation } from "./match/explain.ts";
import { PolicyEvents } from "./policy-events.ts";
import type { Services } from "./services.ts";

/** What a trace reads of the exchange it follows. */
interface TracedExchange {
  readonly request: HttpRequest;
  readonly downstream: Downstream;
  readonly services: Pick<Services, "sensitive" | "env">;
  readonly bind: { readonly policies: Pick<PolicyEnvironment, "credentials"> };
  readonly backend: CompiledBackend | undefined;
  /** `performance.now()` ms; 0 = not yet. */
  readonly startedAt: number;
  readonly calledAt: number;
  readonly answeredAt: number;
}

const SHOW_ALL: ReadonlySet<string> = new Set();

/** Tells a watcher what happens to one exchange: every event of interface.md in its order. Exists only while it is traced. */
export class RequestTrace extends PolicyEvents {
  /** Headers whose values, and what the configuration compares them with, are secrets; lower-case. */
  readonly secretHeaders: ReadonlySet<string>;
  readonly #tracer: Tracer;
  readonly #exchange: TracedExchange;
  #hidden: ReadonlySet<string>;
  readonly #hiddenParameters: Set<string>;
  readonly #startTime: string;
  #callStart = 0;
  #called = false;
  #requestBody: BodyCapture | undefined;
  #responseBody: BodyCapture | undefined;

  constructor(tracer: Tracer, exchange: TracedExchange) {
    super(tracer, [], (place, name) => {
      if (place === "header") this.#hidden = new Set([...this.#hidden, name]);
      else this.#hiddenParameters.add(name);
    });
    this.#tracer = tracer;
    this.#exchange = exchange;
    const { credentials } = exchange.bind.policies;
    this.secretHeaders = new Set([...exchange.services.sensitive, ...credentials.headers]);
    this.#hidden = tracer.options.reveal ? SHOW_ALL : this.secretHeaders;
    this.#hiddenParameters = new Set(
      tracer.options.reveal ? SHOW_ALL : credentials.parametersAt(exchange.request.path),
    );
    this.#startTime = new Date().toISOString();
    tracer.emit("info", { type: "requestStarted" });
  }

  requestSnapshot(stage: string): void {
    const { request, downstream, services, backend } = this.#exchange;
    const pathAndQuery = request.path + shownSearch(request.search, this.#hiddenParameters);
    const state: RequestState = {
      request: {
        method: request.method,
        uri: `${request.scheme}://${request.authority}${pathAndQuery}`,
        path: request.path,
        pathAndQuery,
        host: request.authority,
        scheme: request.scheme,
        version: request.version,
        headers: shownHeaders(request.headers, this.#hidden),
        startTime: this.#startTime,
      },
      source: {
        address: downstream.remoteAddress,
        port: downstream.remotePort,
        rawAddress: downstream.rawAddress,
        rawPort: downstream.rawPort,
      },
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

  responseSnapshot(stage: string, response: HttpResponse): void {
    const { services, startedAt, calledAt, answeredAt } = this.#exchange;
    const state: RequestState = {
      response: { code: response.status, headers: shownHeaders(response.headers, this.#hidden) },
      ...(stage === "raw response" && {
        proxy: {
          requestProcessingDuration: seconds(calledAt - startedAt),
          upstreamDuration: seconds(answeredAt - calledAt),
        },
      }),
      env: services.env,
    };
    this.#tracer.emit("info", { type: "responseSnapshot", stage, requestState: state });
  }

  routeSelection({ selected, evaluatedRoutes, candidates, omitted }: Explanation<CompiledRoute>): void {
    this.#tracer.emit(selected === undefined ? "error" : "info", {
      type: "routeSelection",
      selectedRoute: selected?.route.key ?? null,
      evaluatedRoutes,
      candidates,
      ...(omitted > 0 && { omittedCandidates: omitted }),
    });
  }

  traceSampling(decision: SamplingDecision): void {
    this.#tracer.emit("info", { type: "traceSampling", decision });
  }

  policySelection(phase: Phase, effectivePolicy: Readonly<Record<string, unknown>>): void {
    this.#tracer.emit("info", { type: "policySelection", phase, effectivePolicy });
  }

  callStarted(target: string): void {
    this.#called = true;
    this.#callStart = this.#tracer.now();
    this.#tracer.emit("info", { type: "backendCallStart", target });
  }

  requestBody(buffer: Buffer, from: number, to: number): void {
    this.#requestBody ??= new BodyCapture(this.#tracer.options.maxBodyBytes);
    this.#requestBody.add(buffer, from, to);
  }

  responseBody(buffer: Buffer, from: number, to: number): void {
    this.#responseBody ??= new BodyCapture(this.#tracer.options.maxBodyBytes);
    this.#responseBody.add(buffer, from, to);
  }

  /** The client has sent its whole body; a backend may have answered before that. */
  requestBodyEnded(): void {
    if (this.#exchange.downstream.requestLength === 0) return;
    this.#bodySnapshot("final request", this.#requestBody);
    this.#requestBody = undefined;
  }

  /** The upstream has answered or failed; nothing when no call was under way. */
  callEnded(status: number | null, error: string | null): void {
    if (!this.#called) return;
    this.#called = false;
    if (error !== null) this.#partialRequestBody();
    this.#tracer.emit(severityOf(status, error), { type: "backendCallResult", status, error }, this.#callStart);
  }

  finished(status: number | null, error: string | null, responseHasBody: boolean): void {
    this.callEnded(null, error);
    this.#partialRequestBody();
    if (responseHasBody) this.#bodySnapshot("response", this.#responseBody);
    this.#tracer.emit(severityOf(status, error), { type: "requestFinished", status, error });
    this.#tracer.finish();
  }

  /** What was sent of a body whose end does not come any more. */
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

function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(9)}s`;
}
