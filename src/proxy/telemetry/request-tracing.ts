/** Which requests leave spans. */
import type { Activation, CelEnvironment } from "../../cel/index.ts";
import { getHeader, type HttpRequest, removeHeader, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import type { Tracing } from "../../ir/ir.ts";
import { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import { type EntrySink, exporterKey } from "../../telemetry/otlp/messages.ts";
import type { Arrived, Conventions } from "../../telemetry/tracing/conventions.ts";
import { OLD } from "../../telemetry/tracing/old-conventions.ts";
import { Sampler } from "../../telemetry/tracing/sampling.ts";
import { STABLE } from "../../telemetry/tracing/stable-conventions.ts";
import { newTraceId, parseTraceparent } from "../../telemetry/tracing/traceparent.ts";
import type { SamplingDecision } from "../../trace/events.ts";
import { RequestSpan, type SpanRules, type TraceContext } from "./request-span.ts";

/** The conventions by their names in the configuration. */
const CONVENTIONS: Readonly<Record<NonNullable<Tracing["semanticConventions"]>, Conventions>> = {
  stable: STABLE,
  old: OLD,
};

/** A request that may be sampled. */
interface Sampled {
  readonly request: HttpRequest;
  readonly downstream: { readonly connection: Arrived["client"] };
  readonly variables: Activation;
  /** `performance.now()` ms. */
  readonly startedAt: number;
  readonly trace: { traceSampling(decision: SamplingDecision): void } | undefined;
}

/** `frontendPolicies.tracing`: which requests leave spans (docs/telemetry.md#which-requests-are-sampled). */
export class RequestTracing {
  readonly #sampler: Sampler;
  readonly #rules: SpanRules;

  /** `random` is uniform in [0, 1). Throws CelError for an expression that cannot be used. */
  constructor(config: Tracing, sink: EntrySink, random: () => number, cel: CelEnvironment) {
    const { collector, attributes, remove, filter, semanticConventions = "stable" } = config;
    const exporter = exporterKey("traces", collector);
    this.#sampler = new Sampler(config, random, cel);
    this.#rules = {
      conventions: CONVENTIONS[semanticConventions],
      edits: new AccessLogEdits({ add: attributes, remove, ...(filter !== undefined && { filter }) }, cel),
      export: (span) => sink.add(exporter, span),
    };
  }

  /** What the expressions at the end of requests read; see `Expression.reads`. */
  get reads(): ReadonlySet<string> {
    return this.#rules.edits.reads;
  }

  /**
   * Decides whether a request is sampled. If so, its `traceparent` names the new span from then on. Otherwise its headers stay unchanged,
   * because a gateway that records no span must not appear as a parent.
   */
  begin(exchange: Sampled): RequestSpan | undefined {
    const parent = contextOf(exchange.request);
    const origin = parent === undefined ? "random" : "client";
    const sampled = this.#sampler.wants(origin, () => exchange.variables);
    exchange.trace?.traceSampling(`${sampled ? "sample" : "not sampled"} (${origin})`);
    if (!sampled) return undefined;
    const context = parent ?? { traceId: newTraceId(), parentId: undefined, traceState: undefined };
    const { request, downstream, startedAt } = exchange;
    const { method, scheme, authority, headers } = request;
    const userAgent = getHeader(headers, "user-agent");
    const arrived = { method, scheme, authority, userAgent, client: downstream.connection };
    const span = new RequestSpan(context, arrived, startedAt, this.#rules);
    setHeader(headers, "traceparent", latin1(span.traceparent()));
    // Vendors' state of a trace that is not continued (W3C Trace Context, section 4.3).
    if (parent === undefined) removeHeader(headers, "tracestate");
    return span;
  }
}

/** The client's trace context; undefined if the header is missing, invalid or repeated. */
function contextOf({ headers }: HttpRequest): TraceContext | undefined {
  let text: string | undefined;
  let state: string | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    const value = headers[i + 1] as string;
    if (headers[i] === "traceparent") {
      if (text !== undefined) return undefined;
      text = value;
    } else if (headers[i] === "tracestate") state = state === undefined ? value : `${state},${value}`;
  }
  const parent = text === undefined ? undefined : parseTraceparent(text);
  return parent && { traceId: parent.traceId, parentId: parent.spanId, traceState: state };
}
