/** The spans of a sampled request. */
import { redactTarget, SECRET_PARAMETERS } from "../../base/redaction.ts";
import { grpcStatusIn, isGrpc } from "../../http/grpc-reply.ts";
import { getHeader, type HeaderList, type HttpRequest, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import type { PathMatch } from "../../ir/ir.ts";
import type { OutboundScope, OutboundTrace } from "../../policies/contract/types.ts";
import type { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import { encodeSpan } from "../../telemetry/otlp/entries.ts";
import type {
  Arrived,
  CallConnection,
  CallFacts,
  Conventions,
  ServerFacts,
} from "../../telemetry/tracing/conventions.ts";
import { formatTraceparent, newSpanId } from "../../telemetry/tracing/traceparent.ts";
import type { Subject } from "./subject.ts";

/** The trace that a sampled request continues or begins. */
export interface TraceContext {
  readonly traceId: string;
  /** The client's span, if the client has begun the trace. */
  readonly parentId: string | undefined;
  readonly traceState: string | undefined;
}

/** Attributes, filter and destination of spans. */
export interface SpanRules {
  readonly conventions: Conventions;
  readonly edits: AccessLogEdits;
  export(span: Uint8Array): void;
}

/** A call that is still in progress. */
interface OpenCall extends Pick<CallFacts, "kind" | "subtype" | "target" | "request" | "connection"> {
  readonly spanId: string;
  /** `performance.now()` ms. */
  readonly start: number;
}

/** A call whose span has ended. The trailers of its response may follow. */
interface EndedCall extends CallFacts, OpenCall {
  readonly end: number;
  grpcStatus: number | undefined;
}

/** Kind and subtype of callouts (docs/telemetry.md#spans), by their scope in traces. */
const CALLS: Readonly<Record<OutboundScope, Pick<CallFacts, "kind" | "subtype">>> = {
  ext_authz: { kind: "Policy", subtype: "ExtAuthz" },
  ext_proc: { kind: "Policy", subtype: "ExtProc" },
  rate_limit: { kind: "Policy", subtype: "RateLimit" },
  oidc: { kind: "Policy", subtype: "Oidc" },
  http: { kind: "Policy", subtype: "Http" },
  mirror: { kind: "Mirror", subtype: "Http" },
};

/** The span of one sampled request, and those of the calls that it leads to. They are exported when the request is over. */
export class RequestSpan {
  readonly traceId: string;
  readonly spanId = newSpanId();
  readonly #context: TraceContext;
  readonly #rules: SpanRules;
  readonly #arrived: Arrived;
  /** Milliseconds since the epoch at `performance.now()` 0: one clock for all spans of the request. */
  readonly #origin = Date.now() - performance.now();
  readonly #start: number;
  readonly #ended: EndedCall[] = [];
  #path: PathMatch | undefined;
  #attempts = 0;
  #call: OpenCall | undefined;
  /** The last attempt that got a response. */
  #answered: EndedCall | undefined;
  #recordId: string | undefined;
  /** Undefined while the request is in progress; then whether its spans are exported. */
  #kept: boolean | undefined;

  /** `startedAt` is `performance.now()` of the request. */
  constructor(context: TraceContext, arrived: Arrived, startedAt: number, rules: SpanRules) {
    this.traceId = context.traceId;
    this.#context = context;
    this.#arrived = arrived;
    this.#start = startedAt;
    this.#rules = rules;
  }

  /** `traceparent` for a call whose span is `spanId`, so that its receiver continues the trace. */
  traceparent(spanId = this.spanId): string {
    return formatTraceparent(this.traceId, spanId);
  }

  /** The route is chosen, by a match of this path. */
  matched(path: PathMatch): void {
    this.#path = path;
  }

  /** An attempt begins: starts its span, the parent of the backend's. `target`: `host:port` or `unix:path`; `tls`: inside TLS. */
  callStarted(request: HttpRequest, target: string, tls: boolean): void {
    // The attempt before was abandoned without a response.
    this.callFailed(undefined, "no response in time");
    const spanId = newSpanId();
    // If a policy has removed the header or set another trace, that stays.
    if (getHeader(request.headers, "traceparent")?.startsWith(`00-${this.traceId}-`))
      setHeader(request.headers, "traceparent", latin1(this.traceparent(spanId)));
    const { method, authority } = request;
    const shown = {
      method,
      scheme: tls ? "https" : "http",
      authority,
      // The query may hold the backend's credentials.
      path: redactTarget(request.path, SECRET_PARAMETERS),
      grpc: isGrpc(request.headers),
      retry: this.#attempts++,
    } as const;
    this.#call = { kind: "Primary", subtype: "Http", target, request: shown, spanId, start: performance.now() };
  }

  /** The current call has a connection. */
  callConnected(connection: CallConnection): void {
    if (this.#call !== undefined) this.#call = { ...this.#call, connection };
  }

  /** The response's head has arrived. Does nothing without a current call. */
  callAnswered(status: number, headers: HeaderList): void {
    if (this.#call === undefined) return;
    this.#answered = this.#end(this.#call, { status, grpcStatus: grpcStatusIn(headers) });
    this.#call = undefined;
  }

  /** There is no response, or the gateway does without it. `code`: of the error, if it has one. Does nothing without a current call. */
  callFailed(code: CallFacts["code"], error: string | null): void {
    if (this.#call === undefined) return;
    this.#answered = this.#end(this.#call, { error: error ?? undefined, code });
    this.#call = undefined;
  }

  /** The response is complete: gRPC has its status in the trailers. */
  callTrailers(trailers: HeaderList): void {
    if (this.#answered !== undefined) this.#answered.grpcStatus ??= grpcStatusIn(trailers);
  }

  /** The request has a record of this id. */
  recorded(id: string): void {
    this.#recordId = id;
  }

  /** A callout, which gets its own span. */
  outbound(scope: OutboundScope): OutboundTrace {
    const spanId = newSpanId();
    let call: OpenCall | undefined;
    return {
      traceparent: this.traceparent(spanId),
      started: (target) => {
        call = { ...CALLS[scope], target, spanId, start: performance.now() };
      },
      ended: (status, error) => {
        if (call !== undefined) this.#end(call, { status: status ?? undefined, error: error ?? undefined });
        call = undefined;
      },
    };
  }

  /** The request is over: exports the spans if the filter wants them. */
  finished(over: Omit<ServerFacts, "arrived" | "recordId" | "route">, { variables, shown }: Subject): void {
    const { record } = over;
    const { edits, conventions } = this.#rules;
    const { code, reason, error = "given up" } = record;
    this.callFailed(code ?? reason, error);
    this.#kept = edits.wants(variables);
    if (!this.#kept) return;
    const { userAgent } = this.#arrived;
    const arrived = { ...this.#arrived, userAgent: userAgent && shown.field("user-agent", userAgent) };
    for (const call of this.#ended) this.#export(call);
    const told = conventions.server({
      ...over,
      arrived,
      recordId: this.#recordId,
      route: this.#route(),
    });
    const { "span.name": named, ...attributes } = edits.edit({ ...told.attributes }, shown);
    const { parentId, traceState } = this.#context;
    this.#rules.export(
      encodeSpan({
        traceId: this.traceId,
        spanId: this.spanId,
        parent: parentId === undefined ? undefined : { spanId: parentId, remote: true },
        traceState,
        name: typeof named === "string" && named !== "" ? named : told.name,
        kind: "server",
        start: this.#origin + this.#start,
        end: this.#origin + this.#start + record.durationMs,
        attributes,
        error: told.error,
      }),
    );
  }

  #route(): string | undefined {
    if (this.#path === undefined) return undefined;
    const { type, value } = this.#path;
    return type === "pathPrefix" ? `${value.replace(/\/+$/, "")}/*` : value;
  }

  /** The outcome of a call, whose span is not exported before the request is over. */
  #end(call: OpenCall, outcome: Partial<Pick<CallFacts, "status" | "grpcStatus" | "error" | "code">>): EndedCall {
    const { status, grpcStatus, error, code } = outcome;
    const ended: EndedCall = { ...call, end: performance.now(), status, grpcStatus, error, code };
    // Spans that end after the request, such as a mirror's, are exported on their own.
    if (this.#kept === undefined) this.#ended.push(ended);
    else if (this.#kept) this.#export(ended);
    return ended;
  }

  #export(call: EndedCall): void {
    this.#rules.export(
      encodeSpan({
        ...this.#rules.conventions.client(call),
        traceId: this.traceId,
        spanId: call.spanId,
        parent: { spanId: this.spanId, remote: false },
        traceState: this.#context.traceState,
        kind: "client",
        start: this.#origin + call.start,
        end: this.#origin + call.end,
      }),
    );
  }
}
