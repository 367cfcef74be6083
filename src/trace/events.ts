/** Every event of a trace stream (interface.md "Resources and their fields", reference 4.2). */
export type Severity = "success" | "info" | "warn" | "error";

/** Times are integer microseconds since the trace started. */
export interface TraceEvent {
  readonly eventStart: number | null;
  readonly eventEnd: number;
  readonly severity: Severity;
  /** Nested outbound callouts, outermost first; absent for the request itself. */
  readonly scope?: readonly string[];
  readonly message: TraceMessage;
}

export type Phase = "gateway" | "route" | "backend";

export type TraceMessage =
  | { readonly type: "requestStarted"; readonly requestId?: string }
  | {
      readonly type: "requestSnapshot" | "responseSnapshot";
      readonly stage: string;
      readonly requestState: RequestState;
    }
  | {
      readonly type: "routeSelection";
      readonly selectedRoute: string | null;
      readonly evaluatedRoutes: readonly string[];
      readonly candidates: readonly Candidate[];
      /** Evaluated routes, the farthest from a match, that `candidates` leaves out. */
      readonly omittedCandidates?: number;
      /** Only when no listener takes the request. */
      readonly listeners?: readonly { readonly listener: string; readonly reason: string }[];
    }
  | {
      readonly type: "policySelection";
      readonly phase: Phase;
      readonly effectivePolicy: Readonly<Record<string, unknown>>;
    }
  | { readonly type: "traceSampling"; readonly decision: SamplingDecision }
  | { readonly type: "policy"; readonly kind: string; readonly result: PolicyResult }
  | {
      readonly type: "authorizationResult";
      readonly rules: readonly {
        readonly name: string;
        readonly matched: boolean;
        readonly mode: "allow" | "deny" | "require";
        readonly error?: string;
        /** What the paths in the rule stood for, such as `jwt.sub`; null for what was absent. */
        readonly inputs?: Readonly<Record<string, unknown>>;
      }[];
      readonly result: "allow" | "deny";
    }
  | { readonly type: "backendCallStart"; readonly target: string }
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
      /** Absent when the call ended before a connection was there or had failed, and for calls of policies. */
      readonly timing?: CallTiming;
    }
  | { readonly type: "requestFinished"; readonly status: number | null; readonly error: string | null }
  | { readonly type: "dropped"; readonly count: number };

/** Whether the request leaves spans, and whether its client has begun the trace. */
export type SamplingDecision = `${"sample" | "not sampled"} (${"client" | "random"})`;

export type PolicyResult =
  | {
      readonly type: "apply";
      /** What the policy did, as text. */
      readonly details: string;
      /** The same for programs; absent when the text says it all. */
      readonly data?: unknown;
      readonly snapshot: { readonly before: unknown; readonly after: unknown } | null;
    }
  | { readonly type: "skip"; readonly reason: string };

/** Where the time of a call to a backend went: decimal seconds followed by `s`. Steps that were not needed are absent. */
export interface CallTiming {
  /** The call went out on a connection that had served another before. */
  readonly reusedConnection: boolean;
  /** Looking up the name of the backend. */
  readonly dns?: string;
  /** Until the connection was there, without TLS. */
  readonly connect?: string;
  readonly tls?: string;
  /** From the connection, or from taking it out of the pool, to the head of the response. */
  readonly firstByte?: string;
}

/** Why one route won or lost. `route` is a route key. */
export interface Candidate {
  readonly route: string;
  readonly matched: boolean;
  /** Such as `selected`, `host: …`, `path: …`, `method: …`, `header x: …`, `query q: …`, `precedence: …`. */
  readonly reason: string;
}

export interface RequestState {
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
  /** Where the client connected to; `hostname` is the TLS server name. */
  readonly destination?: { readonly address: string; readonly port: number; readonly hostname?: string };
  /** What policies have found out, by the names that expressions use; secrets replaced. */
  readonly jwt?: unknown;
  readonly apiKey?: unknown;
  readonly basicAuth?: unknown;
  readonly extauthz?: unknown;
  readonly extproc?: unknown;
  readonly metadata?: unknown;
  readonly backend?: { readonly name: string; readonly type: string; readonly protocol: string };
  readonly response?: { readonly code: number; readonly headers: Readonly<Record<string, string>> };
  /** Decimal seconds followed by `s`; only at stage `raw response`. */
  readonly proxy?: { readonly requestProcessingDuration: string; readonly upstreamDuration: string };
  readonly env: Readonly<Record<string, string>>;
}
