import type { Milliseconds } from "../base/durations.ts";
import type { GatewayError } from "../base/errors.ts";
import type { Activation, Condition, InputValue } from "../cel/index.ts";
import type { HeaderList, HttpRequest, HttpResponse, LocalReply } from "../http/message.ts";
import type { RequestPolicyKind } from "./policy-set.ts";
import type { CredentialLocation } from "./shared/credentials/location-schema.ts";
import type { HeaderEdit } from "./shared/header-edits.ts";

/** What policies have found out about a request. Expressions read it under the same names. */
export interface RequestMetadata {
  /** Claims of a verified token or session. */
  jwt?: unknown;
  /** The token itself, which has been taken out of the request; expressions read it as `jwt.rawToken.unredacted()`. */
  token?: string;
  /** Where it was in the request. */
  tokenFrom?: CredentialLocation;
  apiKey?: unknown;
  basicAuth?: unknown;
  extauthz?: unknown;
  extproc?: unknown;
  /** Cookies that `oidc` has taken out of the request, by name; expressions do not see them. */
  oidcCookies?: ReadonlyMap<string, string>;
  /** The request ends with this unless the route has `cors`, which answers it: a preflight that has shown no login. */
  unlessCors?: GatewayError;
  /** Values that transformations have set aside. */
  metadata?: Record<string, unknown>;
}

/** The body of a request or a response, which flows past unless someone asks for it. */
export interface MessageBody {
  /**
   * Reads the body to its end before anything of it goes on. Resolves with undefined when it is longer than `limit` bytes:
   * what was read goes on all the same, and the rest follows. Never resolves once the exchange is over.
   */
  buffer(limit: number): Promise<Uint8Array | undefined>;
  /** Puts another body in its place; its length is announced. What has not been read yet is read and dropped. */
  replace(bytes: Uint8Array): void;
  /** Reads until more than `limit` bytes have come or the body has ended; nothing of it goes on before. */
  peek(limit: number): Promise<BodyStart>;
  /**
   * Lets the body flow through a stage from now on, with what is there of it already; its length is unknown then. Stages
   * follow each other in the order in which they were put in.
   */
  through(make: (sink: BodySink) => BodyStage): void;
  /** Known to have no bytes. */
  readonly empty: boolean;
}

/** Something that a body flows through. It gives what becomes of the bytes to its sink, then or later. */
export interface BodyStage {
  /** A piece of the body; the bytes are the stage's own. False = `resume` will ask for more. */
  write(bytes: Uint8Array): boolean;
  /** The body is complete. */
  end(trailers: HeaderList): void;
  /** The sink takes bytes again after its `write` returned false. */
  onDrain(): void;
}

/** Where a stage puts its bytes. Does nothing once the exchange is over. */
export interface BodySink {
  /** False = what follows the stage is slow: wait for `onDrain`. Bytes are taken all the same. */
  write(bytes: Uint8Array): boolean;
  end(trailers: HeaderList): void;
  /** The stage takes bytes again. */
  resume(): void;
  /** The body cannot go on: this answers the client, or breaks the response off when its head has gone out. */
  breakOff(answer: GatewayError | LocalReply): void;
}

/** How a body begins. */
export interface BodyStart {
  readonly bytes: Uint8Array;
  /** These are all. */
  readonly complete: boolean;
}

/** The body of a request. */
export interface IncomingBody extends MessageBody {
  /** As `buffer`, but the bytes go on at once: for those who want a copy. */
  copy(limit: number): Promise<Uint8Array | undefined>;
}

/** When a call is tried again (reference 3.18). */
export interface RetryPlan {
  /** Further attempts after the first. */
  readonly attempts: number;
  /** Milliseconds before each further attempt, on average; 0 = none. */
  readonly backoff: Milliseconds;
  /** The precondition says which methods are repeated, so attempts that timed out are repeated whatever their method. */
  readonly namesMethods: boolean;
  /** Response statuses that are tried again. */
  readonly codes: ReadonlySet<number>;
  /** Over request and response: true = try again. */
  readonly condition: Condition | undefined;
}

/** What a policy may see and change of one exchange. */
export interface PolicyContext {
  readonly request: HttpRequest;
  /** The prefix that the selected route's match consumed (`/` when none, undefined for exact and regex matches). */
  readonly matchedPrefix: string | undefined;
  /** Present only while this request is being traced: where a policy reports what it did and why. */
  readonly trace: PolicyTrace | undefined;
  /** Present only for sampled requests: what the gateway's own calls for this request are recorded by. */
  readonly span?: OutboundSpans | undefined;
  /** What expressions read; made when it is first asked for. */
  readonly variables: Activation;
  readonly requestMetadata: RequestMetadata;
  readonly requestBody: IncomingBody;
  /** Only for `onResponse`. */
  readonly responseBody: MessageBody;
  /** `frontendPolicies.http.maxBufferSize` of the listener: bytes that a body may take when nothing else is said. */
  readonly maxBufferSize: number;
  /** Set by timeout; milliseconds from request start, 0 = none. */
  requestTimeout: Milliseconds;
  /** Set by timeout; milliseconds per attempt, 0 = none. */
  backendRequestTimeout: Milliseconds;
  /** Set by urlRewrite: `auto` = the upstream host becomes the target's hostname (default), `fixed` = leave the authority. */
  authorityMode: "auto" | "fixed";
  /** Set by retry, when its precondition holds. */
  retry: RetryPlan | undefined;
  /** Changes the headers of whatever answers the client, after all response policies: of errors and redirects too. */
  editResponse(edit: HeaderEdit): void;
  /**
   * A service sets or removes this field of the request (lower-case): what the client has sent that looks like it, with `_` for
   * `-` or as a trailer, goes.
   */
  claimField(name: string): void;
  /**
   * A policy is about to decide which fields the request has, by names that only it knows: the client's trailers go, and its
   * fields with `_`, unless the configuration names them.
   */
  claimAllFields(): void;
  /** Calls back when the exchange is over, so that work for it can end. */
  onClose(callback: () => void): void;
}

/** For whom the gateway asks a service. */
export type CalloutContext = Pick<PolicyContext, "requestMetadata" | "trace" | "span" | "variables">;

/** What those policies see that hold for requests of the gateway's own too: what it asks services. */
export type OutgoingContext = CalloutContext & Pick<PolicyContext, "request" | "authorityMode">;

export interface PolicyTrace {
  /** Emits `policy` with result `apply`; `before`/`after` become its snapshot. */
  applied(kind: string, details: unknown, before?: unknown, after?: unknown): void;
  /** As `applied`, of a policy that lets the request pass or refuses it: a refusal has severity `error`. */
  decided(kind: string, passes: boolean, details: unknown): void;
  /** As `applied`, of a policy that could not do its work while the request goes on: severity `warn`. */
  failed(kind: string, details: unknown): void;
  /** Emits `policy` with result `skip`; `warn` when what the policy works on is missing or wrong. Default `info`. */
  skipped(kind: string, reason: string, severity?: "info" | "warn"): void;
  /** Emits `authorizationResult`. */
  authorization(rules: readonly AuthorizationRuleResult[], result: "allow" | "deny"): void;
  /** Values of this header or query parameter are not shown from now on: they are secrets of the gateway. */
  hide(place: "header" | "query parameter", name: string): void;
  /** The events of a call of the gateway's own, such as one to an authorization service: they carry `scope`. */
  outbound(scope: string): OutboundTrace;
  /** For policies of such a call itself: their events carry `scope` too. */
  within(scope: string): PolicyTrace;
}

export interface AuthorizationRuleResult {
  /** Text of the expression. */
  readonly name: string;
  readonly matched: boolean;
  readonly mode: "allow" | "deny" | "require";
  /** What the paths in the expression stood for. */
  readonly inputs?: readonly InputValue[];
  /** Why the rule could not be evaluated: it then denies as `deny`, and is not true as `require` or `allow`. */
  readonly error?: string;
}

/** What a call of the gateway's own is made for. */
export type OutboundScope = "ext_authz" | "ext_proc" | "rate_limit" | "oidc" | "http" | "mirror";

export interface OutboundSpans {
  /** A span for one call; it begins and ends when that does. */
  outbound(scope: OutboundScope): OutboundTrace;
}

export interface OutboundTrace {
  /** Header that lets the service continue the trace of a sampled request. */
  readonly traceparent?: string;
  /** Emits `backendCallStart`; `target` as `host:port`. */
  started(target: string): void;
  /** Emits `backendCallResult`. */
  ended(status: number | null, error: string | null): void;
}

/** undefined = go on; a reply ends the request side. Synchronous wherever it can be: a promise costs a turn of the event loop. */
export type RequestOutcome = undefined | LocalReply | Promise<undefined | LocalReply>;

/** What a policy does to requests and responses; holds no state of a request. Hooks throw `GatewayError` to reject. */
export interface PolicyHooks {
  readonly onRequest?: (context: PolicyContext) => RequestOutcome;
  readonly onResponse?: (context: PolicyContext, response: HttpResponse) => void | Promise<void>;
  /** `onResponse` is for answers of backends only, not for those that the gateway makes itself. */
  readonly upstreamOnly?: boolean;
}

/** A policy of a chain. */
export interface CompiledPolicy extends PolicyHooks {
  readonly kind: RequestPolicyKind;
}
