/** The spans of a sampled request. */
import { redactTarget, SECRET_PARAMETERS } from "../../base/redaction.ts";
import { grpcStatusIn } from "../../http/grpc-reply.ts";
import { getHeader, type HeaderList, type HttpRequest, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import type { PathMatch } from "../../ir/ir.ts";
import type { OutboundScope, OutboundTrace } from "../../policies/contract/types.ts";
import type { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import { type AccessRecord, recordFields } from "../../telemetry/access-record.ts";
import { type Attributes, encodeSpan, type Span } from "../../telemetry/otlp/entries.ts";
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
  readonly edits: AccessLogEdits;
  export(span: Uint8Array): void;
}

/** A call that is still in progress. */
interface OpenSpan {
  readonly spanId: string;
  readonly name: string;
  readonly start: number;
  readonly attributes: Attributes;
}

/** Kind and subtype of callouts (docs/telemetry.md#spans), by their scope in traces. */
const CALLS: Readonly<Record<OutboundScope, readonly [kind: "Policy" | "Mirror", subtype: string]>> = {
  ext_authz: ["Policy", "ExtAuthz"],
  ext_proc: ["Policy", "ExtProc"],
  rate_limit: ["Policy", "RateLimit"],
  oidc: ["Policy", "Oidc"],
  http: ["Policy", "Http"],
  mirror: ["Mirror", "Http"],
};

/** The span of one sampled request, and those of the calls that it leads to. They are exported when the request is over. */
export class RequestSpan {
  readonly traceId: string;
  readonly spanId = newSpanId();
  readonly #context: TraceContext;
  readonly #rules: SpanRules;
  /** Milliseconds since the epoch at `performance.now()` 0: one clock for all spans of the request. */
  readonly #origin = Date.now() - performance.now();
  readonly #start: number;
  readonly #ended: Span[] = [];
  #path: PathMatch | undefined;
  #call: OpenSpan | undefined;
  /** Attributes of the last call that got a response. */
  #answered: Record<string, unknown> = {};
  /** Undefined while the request is in progress; then whether its spans are exported. */
  #kept: boolean | undefined;

  /** `startedAt` is `performance.now()` of the request. */
  constructor(context: TraceContext, startedAt: number, rules: SpanRules) {
    this.traceId = context.traceId;
    this.#context = context;
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

  /** An attempt begins: starts its span, the parent of the backend's. */
  callStarted(request: HttpRequest, target: string): void {
    // The attempt before was abandoned without a response.
    this.callEnded(null, "no response in time", []);
    const spanId = newSpanId();
    // If a policy has removed the header or set another trace, that stays.
    if (getHeader(request.headers, "traceparent")?.startsWith(`00-${this.traceId}-`))
      setHeader(request.headers, "traceparent", latin1(this.traceparent(spanId)));
    const attributes = {
      ...kindOf("Primary", "Http"),
      "http.method": request.method,
      "http.host": request.authority,
      // The query may hold the backend's credentials.
      "http.path": redactTarget(request.path, SECRET_PARAMETERS),
    };
    this.#call = { spanId, name: `${request.method} ${target}`, start: performance.now(), attributes };
  }

  /** The response's head has arrived, or the call has failed. Does nothing without a current call. */
  callEnded(status: number | null, error: string | null, headers: HeaderList): void {
    if (this.#call === undefined) return;
    this.#answered = this.#end(this.#call, status, error, grpcStatusIn(headers));
    this.#call = undefined;
  }

  /** The response is complete: gRPC has its status in the trailers. */
  callTrailers(trailers: HeaderList): void {
    this.#answered["grpc.status"] ??= grpcStatusIn(trailers);
  }

  /** A callout, which gets its own span. */
  outbound(scope: OutboundScope): OutboundTrace {
    const [kind, subtype] = CALLS[scope];
    const spanId = newSpanId();
    let call: OpenSpan | undefined;
    return {
      traceparent: this.traceparent(spanId),
      started: (target) => {
        const attributes = { ...kindOf(kind, subtype), "http.host": target };
        call = { spanId, name: subtype, start: performance.now(), attributes };
      },
      ended: (status, error) => {
        if (call !== undefined) this.#end(call, status, error, undefined);
        call = undefined;
      },
    };
  }

  /** The request is over: exports the spans if the filter wants them. */
  finished(record: AccessRecord, scheme: string, { variables, shown }: Subject): void {
    const { edits } = this.#rules;
    this.callEnded(null, record.error ?? "given up", []);
    this.#kept = edits.wants(variables);
    if (!this.#kept) return;
    const { error, ...fields } = recordFields({ ...record, traceId: undefined, spanId: undefined });
    const { "span.name": named, ...attributes } = edits.edit(
      { ...fields, "url.scheme": scheme, "network.protocol.version": record.version?.slice("HTTP/".length) },
      shown,
    );
    const { parentId, traceState } = this.#context;
    for (const call of this.#ended) this.#rules.export(encodeSpan(call));
    this.#rules.export(
      encodeSpan({
        traceId: this.traceId,
        spanId: this.spanId,
        parent: parentId === undefined ? undefined : { spanId: parentId, remote: true },
        traceState,
        name: typeof named === "string" && named !== "" ? named : this.#name(record.method),
        kind: "server",
        start: this.#origin + this.#start,
        end: this.#origin + this.#start + record.durationMs,
        attributes,
        error: record.error ?? serverError(record.status),
      }),
    );
  }

  #name(method: string | undefined): string {
    if (this.#path === undefined) return "unknown";
    const { type, value } = this.#path;
    return `${method} ${type === "pathPrefix" ? `${value.replace(/\/+$/, "")}/*` : value}`;
  }

  /** Returns the attributes of the span, which is not exported before the request is over. */
  #end(
    call: OpenSpan,
    status: number | null,
    error: string | null,
    grpcStatus: number | undefined,
  ): Record<string, unknown> {
    const attributes = { ...call.attributes, "http.status": status ?? undefined, "grpc.status": grpcStatus };
    const span: Span = {
      traceId: this.traceId,
      spanId: call.spanId,
      parent: { spanId: this.spanId, remote: false },
      traceState: this.#context.traceState,
      name: call.name,
      kind: "client",
      start: this.#origin + call.start,
      end: this.#origin + performance.now(),
      attributes,
      error: error ?? serverError(status ?? undefined),
    };
    // Spans that end after the request, such as a mirror's, are exported on their own.
    if (this.#kept === undefined) this.#ended.push(span);
    else if (this.#kept) this.#rules.export(encodeSpan(span));
    return attributes;
  }
}

function kindOf(kind: string, subtype: string): Attributes {
  return { "tracegate.outbound.kind": kind, "tracegate.outbound.subtype": subtype };
}

function serverError(status: number | undefined): string | undefined {
  return status !== undefined && status >= 500 ? `status ${status}` : undefined;
}
