/**
 * Every event of a trace stream. This file is the contract: `docs/trace-events.md` and the JSON schema are made
 * from it.
 */
import type { Origin } from "../base/origin.ts";
import type { Findings, Need } from "../cel/index.ts";
import type { PolicyEventKind } from "./policy-kinds.ts";
import type { KeyedRoute } from "./route-names.ts";

export type Severity = "success" | "info" | "warn" | "error";

/** Times are integer microseconds since the trace started. */
export interface TraceEvent {
  readonly eventStart: number | null;
  readonly eventEnd: number;
  readonly severity: Severity;
  /** What the event belongs to, outermost first: `shadow` for a shadow policy, `satisfy` for its alternatives, callouts; absent for the request itself. */
  readonly scope?: readonly string[];
  /** Expressions evaluated since the previous event, such as those of the policy that the event is about; absent if empty. */
  readonly expressions?: readonly ExpressionResult[];
  readonly message: TraceMessage;
}

export type Phase = "gateway" | "route" | "backend";

/** `undecided`: there was not enough of the request, or too many others were waiting. */
export type ShadowVerdict = "allow" | "deny" | "undecided";

export type TraceMessage =
  | {
      readonly type: "requestStarted";
      readonly requestId?: string;
      /** Only for connections without requests: `tcp`, `tls` that passes through, or `udp`, a session of datagrams. */
      readonly protocol?: "tcp" | "tls" | "udp";
    }
  | {
      readonly type: "requestSnapshot" | "responseSnapshot";
      readonly stage: string;
      readonly requestState: RequestState;
    }
  | {
      readonly type: "routeSelection";
      readonly selectedRoute: string | null;
      readonly evaluatedRoutes: readonly string[];
      /** The nearest of the evaluated routes, and some of other hosts. */
      readonly candidates: readonly Candidate[];
      /** How many routes `evaluatedRoutes` omits, because there are very many: those farthest from a match. */
      readonly omittedRoutes?: number;
      /** The route group that the routes belong to; absent if they belong to the listener. */
      readonly group?: { readonly name: string; readonly origin?: Origin };
      /** Only if no listener matches the host. */
      readonly listeners?: readonly {
        /** Its key. */
        readonly listener: string;
        readonly name?: string;
        readonly reason: string;
        readonly origin?: Origin;
      }[];
    }
  | {
      readonly type: "policySelection";
      readonly phase: Phase;
      readonly effectivePolicy: Readonly<Record<string, unknown>>;
      /** Where each kind was written, of `authorization` each rule; absent without policies. */
      readonly origins?: Readonly<Record<string, readonly Origin[]>>;
    }
  | {
      /** The request asks for the answer to a challenge of an ACME server (RFC 8555 8.3), on a port where the gateway has such. */
      readonly type: "acmeChallenge";
      /** `answered`: by the gateway itself; `unknown`: none of its orders has this token, and the request goes on. */
      readonly result: "answered" | "unknown";
    }
  | { readonly type: "traceSampling"; readonly decision: SamplingDecision }
  | { readonly type: "policy"; readonly kind: PolicyEventKind; readonly result: PolicyResult }
  | {
      readonly type: "authorizationResult";
      readonly rules: readonly RuleResult[];
      readonly result: "allow" | "deny";
    }
  | {
      /** What a policy with `shadow: true` would have done. */
      readonly type: "shadowDecision";
      /** The kind of the policy, such as `jwtAuth`. */
      readonly policy: string;
      readonly phase: Phase;
      readonly decision: ShadowVerdict;
      /** Of the response that the client would have got; only for `deny`. */
      readonly status?: number | undefined;
      readonly code?: string | undefined;
      /** Why it is not `allow`. */
      readonly reason?: string | undefined;
    }
  | {
      readonly type: "backendCallStart";
      readonly target: string;
      /** Name of the backend that `target` is an endpoint of; absent for callouts, and if it equals `target`. */
      readonly backend?: string;
    }
  | {
      readonly type: "bodySnapshot";
      readonly stage: "final request" | "response";
      readonly body: string;
      readonly truncated?: boolean;
    }
  | {
      readonly type: "backendCallResult";
      readonly status: number | null;
      readonly error: string | null;
      /** Absent for callouts, and if the call ended before its connection was established or failed. */
      readonly timing?: CallTiming;
    }
  | {
      readonly type: "requestFinished";
      readonly status: number | null;
      readonly error: string | null;
      /** Where the part of the configuration that caused `error` was written; absent if none did. */
      readonly origin?: Origin;
      /** Only for gRPC and gRPC-Web calls. */
      readonly grpc?: GrpcEnd;
    }
  | {
      readonly type: "streamProgress";
      /** From the client and to it, since the beginning. A chunk is what one read brought. */
      readonly received: { readonly chunks: number; readonly bytes: number };
      readonly sent: { readonly chunks: number; readonly bytes: number };
      /** How long nothing has moved, now and at most: decimal seconds followed by `s`. */
      readonly idle: string;
      readonly longestIdle: string;
    }
  | {
      /** A complete message of a WebSocket or a gRPC call has passed; only for followers. */
      readonly type: "streamMessage";
      readonly direction: StreamDirection;
      /** Among all messages of its direction, from 1. */
      readonly number: number;
      /** As sent, so compressed if `compressed` is set. */
      readonly bytes: number;
      readonly compressed?: true;
      /** Only of WebSocket. */
      readonly opcode?: "text" | "binary" | "close" | "ping" | "pong";
      /** Of a `close` that has one; `body` is then its reason. */
      readonly closeCode?: number;
      /** Base64, not decompressed; absent if no bodies are shown. */
      readonly body?: string;
      readonly truncated?: true;
    }
  | {
      /** Messages that were not shown since the previous event of this type, because there were too many. */
      readonly type: "messagesOmitted";
      readonly received: MessageSum;
      readonly sent: MessageSum;
    }
  | {
      /** The bytes of a direction are not messages; they pass all the same, and nothing more is shown of it. */
      readonly type: "messagesUnreadable";
      readonly direction: StreamDirection;
      readonly reason: string;
    }
  | { readonly type: "traceEnded"; readonly reason: string }
  | { readonly type: "dropped"; readonly count: number };

/** The types of events that only readers get who ask for messages. */
export const MESSAGE_TYPES: ReadonlySet<unknown> = new Set<TraceMessage["type"]>([
  "streamMessage",
  "messagesOmitted",
  "messagesUnreadable",
]);

/** `received` from the client, or `sent` to it. */
export type StreamDirection = "received" | "sent";

export interface MessageSum {
  readonly messages: number;
  readonly bytes: number;
}

/** Result of one authorization rule. Secrets are redacted. */
export interface RuleResult extends Pick<ExpressionResult, "needs" | "inputs" | "values"> {
  /** The expression. */
  readonly name: string;
  /** Whether it is true, or assumed to be if it has `needs`. */
  readonly matched: boolean;
  readonly mode: "allow" | "deny" | "require";
  /** Why it could not be evaluated: it then denies as `deny`, and is not true as `require` or `allow`. */
  readonly error?: string;
}

/** An expression, what it read and what it computed. Secrets are redacted. */
export interface ExpressionResult {
  readonly text: string;
  /** JSON; absent if the evaluation failed, and for bodies and maps of headers. */
  readonly value?: unknown;
  /** Why it failed. */
  readonly error?: string;
  /** What is not known, though the value depends on it; only in explanations. */
  readonly needs?: readonly Need[];
  /** Values of the paths in it, such as `jwt.sub`; null if absent. */
  readonly inputs?: Readonly<Record<string, unknown>>;
  /** Results of the other parts that were evaluated; absent without such parts. */
  readonly values?: readonly PartResult[];
}

/** The result of a part of an expression: `from` and `to` are offsets into its text, in UTF-16 units. */
export interface PartResult {
  readonly from: number;
  readonly to: number;
  /** JSON; absent if the part failed. */
  readonly value?: unknown;
  /** Why it failed. */
  readonly error?: string;
}

/** How a gRPC call ended. */
export interface GrpcEnd {
  /** `grpc-status` of the head or the trailers; null without one. */
  readonly status: number | null;
  /** Complete messages; not counted for gRPC-Web. */
  readonly requestMessages?: number;
  readonly responseMessages?: number;
}

/** Whether the request is sampled, and whether its client or the gateway decided. */
export type SamplingDecision = `${"sample" | "not sampled"} (${"client" | "random"})`;

type PolicyResult =
  | {
      readonly type: "apply";
      /** What the policy did, as text. */
      readonly details: string;
      /** The same for programs; absent if the text is complete. */
      readonly data?: unknown;
      readonly snapshot: { readonly before: unknown; readonly after: unknown } | null;
    }
  | { readonly type: "skip"; readonly reason: string };

/** How long each step of a call to a backend took: decimal seconds followed by `s`. Skipped steps are absent. */
export interface CallTiming {
  /** The call used a pooled connection. */
  readonly reusedConnection: boolean;
  /** Name resolution. */
  readonly dns?: string;
  /** Until the connection was established, without TLS. */
  readonly connect?: string;
  readonly tls?: string;
  /** From the established or pooled connection to the response head. */
  readonly firstByte?: string;
}

/** Why one route won or lost. */
export interface Candidate extends KeyedRoute {
  readonly matched: boolean;
  /** Such as `selected`, `host: …`, `path: …`, `method: …`, `header x: …`, `query q: …`, `precedence: …`. */
  readonly reason: string;
  /** The rule of precedence by which a route lost that matches too: `longer path`. */
  readonly because?: string;
}

/** A request, with the findings of policies under the names of their variables; secrets are redacted. */
export interface RequestState extends Findings {
  readonly request?: {
    readonly method: string;
    readonly uri: string;
    readonly path: string;
    readonly pathAndQuery: string;
    readonly host: string;
    readonly scheme: string;
    readonly version: string;
    readonly headers: Readonly<Record<string, string>>;
    /** ISO 8601 UTC */
    readonly startTime: string;
  };
  readonly source?: {
    readonly address: string;
    readonly port: number;
    readonly rawAddress: string;
    readonly rawPort: number;
  };
  /** The address that the client connected to; `hostname` is the TLS server name. */
  readonly destination?: { readonly address: string; readonly port: number; readonly hostname?: string };
  readonly backend?: { readonly name: string; readonly type: string; readonly protocol: string };
  readonly response?: { readonly code: number; readonly headers: Readonly<Record<string, string>> };
  /** Decimal seconds followed by `s`; only at stage `raw response`. */
  readonly proxy?: { readonly requestProcessingDuration: string; readonly upstreamDuration: string };
  readonly env: Readonly<Record<string, string>>;
}
