import type { Milliseconds } from "../../base/durations.ts";
import type { ErrorCode, GatewayError } from "../../base/errors.ts";
import type { Activation, Condition, Observation } from "../../cel/index.ts";
import type { HeaderList, HttpRequest, HttpResponse, Latin1, LocalReply } from "../../http/message/message.ts";
import type { Phase, RuleResult, ShadowVerdict } from "../../trace/events.ts";
import type { CredentialLocation } from "../schema/location.ts";
import type { DecisionTrace } from "./decisions.ts";
import type { HeaderEdit } from "./header-edits.ts";
import type { MissingCredential } from "./missing-credential.ts";
import type { ShadowableKind } from "./shadow.ts";

/** What policies have established about a request. Expressions read it under the same names. */
export interface RequestMetadata {
  /** Claims of a verified token or session. */
  jwt?: unknown;
  /** The token, which jwtAuth has removed from the request; expressions read it as `jwt.rawToken.unredacted()`. */
  token?: string;
  /** Where the token was in the request. */
  tokenFrom?: CredentialLocation;
  /** Metadata of the API key, and `key` itself as a secret. */
  apiKey?: unknown;
  /** `username` of verified credentials. */
  basicAuth?: unknown;
  /** Metadata from authorization services, about the connection and the request. */
  extauthz?: unknown;
  /** Metadata from external processors. */
  extproc?: unknown;
  /** Cookies that `oidc` has removed from the request, by name; expressions do not see them. */
  oidcCookies?: ReadonlyMap<string, string>;
  /** A preflight without a credential: the policy ends the request with this error unless the route has `cors`, which responds to it. */
  unlessCors?: { readonly policy: "oidc" | "satisfy"; readonly error: GatewayError };
  /** Values that `metadata` of transformations has computed. */
  metadata?: Record<string, unknown>;
}

/** The body of a request or response. It streams past the policies unless one of them uses a method below. */
export interface MessageBody {
  /**
   * Reads the body to its end before any of it is passed on. Resolves with undefined when it is longer than `limit` bytes:
   * what was read is passed on anyway, and the rest follows. Never resolves once the exchange is over.
   */
  buffer(limit: number): Promise<Uint8Array | undefined>;
  /**
   * Like `buffer`, but also resolves with undefined if the worker's budget for bodies is used up, which otherwise ends the exchange:
   * for policies that can do without the whole body.
   */
  tryBuffer(limit: number): Promise<Uint8Array | undefined>;
  /** Puts another body in its place; its length is announced. What has not been read yet is read and dropped. */
  replace(bytes: Uint8Array): void;
  /** Reads until more than `limit` bytes have arrived or the body has ended; none of it is passed on before. */
  peek(limit: number): Promise<BodyStart>;
  /**
   * Passes the body through a stage, including bytes that have already arrived; its length is then unknown. Stages run in the order
   * in which they were added.
   */
  through(make: (sink: BodySink) => BodyStage): void;
  /** Whether the body is known to have no bytes. */
  readonly empty: boolean;
}

/** A transformation that a body flows through. It writes its output to its sink, at once or later. */
export interface BodyStage {
  /** A piece of the body, which the stage may keep. Returns false for backpressure, until it calls `resume`. */
  write(bytes: Uint8Array): boolean;
  /** The body is complete. */
  end(trailers: HeaderList): void;
  /** The sink takes bytes again after its `write` returned false. */
  onDrain(): void;
}

/** A policy that can end the exchange while a body flows, after its hooks have run. */
export interface StageOwner {
  readonly policy: "extProc" | "maxRequestBodySize";
  readonly phase: Phase;
}

/** The output of a stage. Its methods do nothing once the exchange has ended. */
export interface BodySink {
  /** False = what follows the stage is slow: wait for `onDrain`. Bytes are accepted anyway. */
  write(bytes: Uint8Array): boolean;
  end(trailers: HeaderList): void;
  /** The stage accepts bytes again after `write` returned false. */
  resume(): void;
  /**
   * Ends the exchange with this response, or resets it if the head of the response has been sent. `owner`: the policy that decided so;
   * absent if the body itself is the cause.
   */
  breakOff(answer: GatewayError | LocalReply, owner?: StageOwner): void;
}

/**
 * Puts a response into the form that its client understands: changes the head, and returns what makes the stage for the body;
 * undefined = the body is unchanged.
 */
export type ResponseTranslation = (response: HttpResponse) => ((sink: BodySink) => TranslationStage) | undefined;

/** The stage of a translation. */
export interface TranslationStage extends BodyStage {
  /** The last message is not complete, so the client would read a status that follows as a part of it. */
  readonly withinMessage: boolean;
}

/** The first bytes of a body. */
export interface BodyStart {
  readonly bytes: Uint8Array;
  /** Whether these are all bytes of the body. */
  readonly complete: boolean;
}

/** The body of a request. */
export interface IncomingBody extends MessageBody {
  /** Like `buffer`, but the body streams on meanwhile: for policies that need a copy, such as mirrors. */
  copy(limit: number): Promise<Uint8Array | undefined>;
}

/** When an attempt is retried (docs/policies/retry.md). */
export interface RetryPlan {
  /** Further attempts after the first. */
  readonly attempts: number;
  /** Mean milliseconds before each further attempt, jittered; 0 = none. */
  readonly backoff: Milliseconds;
  /** The precondition reads the method, so attempts that timed out are retried whatever their method. */
  readonly namesMethods: boolean;
  /** Response statuses that are retried. */
  readonly codes: ReadonlySet<number>;
  /** gRPC statuses that are retried; undefined = none. */
  readonly grpcCodes: ReadonlySet<number> | undefined;
  /** Over request and response: true = retry. */
  readonly condition: Condition | undefined;
  /** Each retry goes to a backend of the route that the request has not tried. */
  readonly otherBackends: boolean;
}

/** Content codings that the gateway can apply, by their names in `Content-Encoding`. */
export type ContentCoding = "zstd" | "br" | "gzip";

/** A session of `sessionPersistence` that has been read and is valid. Times are Unix seconds. */
export interface PersistentSession {
  readonly endpoint: string;
  /** When the client got it: the start of `absoluteTimeout`. */
  readonly since: number;
}

/**
 * Who made a response. `policy`: a policy, by its configuration or its service, has made it with a body or has replaced its body. A
 * policy's response without a body is the gateway's.
 */
export type ResponseSource = "backend" | "gateway" | "policy";

/** What a policy may see and change of one exchange. */
export interface PolicyContext {
  readonly request: HttpRequest;
  /** CDN-Loop of calls that are made for the request (http/loop.ts). */
  readonly loop: Latin1;
  /** The prefix that the selected route's match consumed (`/` when none, undefined for exact and regex matches). */
  readonly matchedPrefix: string | undefined;
  /**
   * The path of the selected route's match: its prefix or exact path, or the folder of all paths that fit its regular
   * expression; `/` if that is all of them.
   */
  readonly matchedPath: string;
  /** Where a policy reports what it did and why; only while this request is traced. */
  readonly trace: PolicyTrace | undefined;
  /** Spans of callouts; only for sampled requests. */
  readonly span?: OutboundSpans | undefined;
  /** Variables of expressions, created on first use: most requests evaluate none. */
  readonly variables: Activation;
  readonly requestMetadata: RequestMetadata;
  /** Counts bytes that metadata takes until the end of the request. Throws TG_BUFFERS_FULL if the worker holds too much. */
  holdMetadata(bytes: number): void;
  /** The address of the client, behind trusted proxies as they report it; see `Forwarding.clientAddress`. */
  readonly clientAddress: string;
  /** Whether a trusted proxy reports it in `X-Forwarded-For`, or could have. */
  readonly clientIsReported: boolean;
  readonly requestBody: IncomingBody;
  /** Length of the request's body as the client announces it, in bytes; 0 = no body, UNKNOWN_LENGTH = it does not say. */
  readonly requestLength: number;
  /**
   * Ends the exchange with `error()` as soon as more than `bytes` of the request's body have arrived, or throws that error if they already
   * have. Nothing is held for this. Requests that open tunnels have no body.
   */
  limitRequestBody(bytes: number, error: () => GatewayError): void;
  /** Only for `onResponse`. */
  readonly responseBody: MessageBody;
  /** Only for `onResponse`. */
  readonly responseSource: ResponseSource;
  /** `frontendPolicies.http.maxBufferSize` of the listener: default limit of a buffered body, in bytes. */
  readonly maxBufferSize: number;
  /** Set by `timeout`: milliseconds from the start of the request, 0 = none. */
  requestTimeout: Milliseconds;
  /** Set by `timeout`: milliseconds per attempt, 0 = none. */
  backendRequestTimeout: Milliseconds;
  /** Set by urlRewrite: `auto` = the upstream host becomes the target's hostname (default), `fixed` = leave the authority. */
  authorityMode: "auto" | "fixed";
  /** Set by retry, when its precondition holds. */
  retry: RetryPlan | undefined;
  /** Set by compression: what the client and the gateway have agreed on; undefined = nothing. */
  acceptedCoding: ContentCoding | undefined;
  /** Set by sessionPersistence: the session that the request belongs to; undefined = none that is valid. */
  session: PersistentSession | undefined;
  /**
   * Sends the first attempt to the endpoint of this name as long as it takes requests, whatever the weights of the route's backends.
   * False = none of them has such an endpoint, or it takes no requests now.
   */
  preferEndpoint(name: string): boolean;
  /** Name of the endpoint that was called last, as `preferEndpoint` takes it; undefined = the backend has none to choose from. */
  readonly calledEndpoint: string | undefined;
  /** Changes headers of the final response, after all response policies; also of errors and redirects. */
  editResponse(edit: HeaderEdit): void;
  /**
   * Sends the request, whose Content-Type has been changed by now, to the backend as gRPC: over HTTP/2 unless the backend excludes
   * that, with its deadline. `translate` is called once with the head of the response, also of errors, after all response policies.
   */
  becomeGrpc(translate: ResponseTranslation): void;
  /**
   * A service sets or removes this field of the request (lower-case). The client's fields that a backend could take for it, with
   * `_` for `-` or as a trailer, are removed.
   */
  claimField(name: string): void;
  /**
   * The policy is about to set fields whose names are not known in advance: the client's trailers are removed, and its fields with
   * `_` unless the configuration names them.
   */
  claimAllFields(): void;
  /** Calls back when the exchange ends, however it ends. */
  onClose(callback: () => void): void;
  /** Calls back when the exchange has ended and no longer needs the decisions of its policies, so that they can cancel their callouts. */
  onCancel(callback: () => void): void;
  /** Runs the shadow policies of the exchange. */
  readonly shadow: ShadowRuns;
}

/** Runs shadow policies, which decide without effect. */
export interface ShadowRuns {
  /** Runs the hook of a policy now, or after the shadow policies that still wait; returns at once. */
  run(kind: ShadowableKind, place: ShadowPlace, onRequest: NonNullable<PolicyHooks["onRequest"]>): void;
}

/** Where a shadow policy runs. */
export interface ShadowPlace {
  readonly phase: Phase;
  /** Unique for each policy of each route, listener or backend. */
  readonly identity: string;
}

/** What a shadow policy would have done with the request. */
export interface ShadowDecision {
  readonly kind: ShadowableKind;
  readonly phase: Phase;
  /** `undecided`: there was not enough of the request, or too many others were waiting. */
  readonly verdict: ShadowVerdict;
  /** Of the response that the client would have got; undefined unless it denies. */
  readonly status?: number | undefined;
  readonly code?: ErrorCode | undefined;
  /** What decided, without secrets; undefined if it allows. */
  readonly reason?: string | undefined;
  /** The rule that decided: its position among those of all levels. */
  readonly rule?: number | undefined;
}

/** The part of a context that a callout needs: the request on whose behalf it is made. */
export type CalloutContext = Pick<PolicyContext, "requestMetadata" | "trace" | "span" | "variables">;

/** The context of policies that also apply to callouts. */
export type OutgoingContext = CalloutContext & Pick<PolicyContext, "request" | "authorityMode">;

/** Where policies report to the trace of one request. */
export interface PolicyTrace extends DecisionTrace {
  /** Emits `authorizationResult`. */
  authorization(rules: readonly AuthorizationRuleResult[], result: "allow" | "deny"): void;
  /** Redacts this header or query parameter from now on: its value is a secret of the gateway. */
  hide(place: "header" | "query parameter", name: string): void;
  /** Events of a callout, such as one to an authorization service; they carry `scope`. */
  outbound(scope: string): OutboundTrace;
  /** For policies of the callout itself; their events carry `scope` too. */
  within(scope: string): PolicyTrace;
  /** For a shadow policy: its events carry the scope `shadow`, and none is an error. */
  ofShadow(): PolicyTrace;
  /** Emits `shadowDecision`. */
  shadow(decision: ShadowDecision): void;
}

/** Result of one rule in `authorizationResult`, before it is redacted. */
export interface AuthorizationRuleResult
  extends Pick<RuleResult, "name" | "matched" | "mode" | "error">,
    Omit<Observation, "whole"> {}

/** Purpose of a callout. */
export type OutboundScope = "ext_authz" | "ext_proc" | "rate_limit" | "oidc" | "http" | "mirror";

interface OutboundSpans {
  /** A span for one callout; it starts and ends with it. */
  outbound(scope: OutboundScope): OutboundTrace;
}

export interface OutboundTrace {
  /** W3C Trace Context of a sampled request, which lets the service continue its trace. */
  readonly traceparent?: string;
  /** Emits `backendCallStart`; `target` as `host:port`. */
  started(target: string): void;
  /** Emits `backendCallResult`. */
  ended(status: number | null, error: string | null): void;
}

/** undefined = continue; a reply ends the request side. Synchronous where nothing waits: a promise costs a turn of the event loop. */
export type RequestOutcome = undefined | LocalReply | Promise<undefined | LocalReply>;

/** Lets a request pass: sets what its credential says about the client, and removes the credential. */
export type Admission = (context: PolicyContext) => void;

/** What a policy finds about a credential; undefined = there is none, and the policy requires none. */
type FoundCredential = Admission | MissingCredential | undefined;

export type Verified = FoundCredential | Promise<FoundCredential>;

/**
 * A policy that authenticates, in steps: `satisfy` verifies several credentials before it lets the request pass by one of them. The
 * request does not change until then.
 */
export interface Authenticator {
  /** Responds to a request for the policy itself, such as the callback of a login; undefined for all others. */
  readonly serve?: ((context: PolicyContext) => RequestOutcome) | undefined;
  /** Verifies the credential of the request. Throws `GatewayError` for a wrong one. */
  verify(context: PolicyContext, trace: PolicyTrace | undefined): Verified;
  /** Removes what can be taken for a credential of the policy, although none was verified. */
  discard(context: PolicyContext): void;
  /** The response that leads a browser to a login; undefined if the client is none. */
  readonly login?: ((context: PolicyContext) => LocalReply | undefined) | undefined;
}

/** The hooks of a policy. They are shared by all exchanges and hold no state of one. They throw `GatewayError` to reject a request. */
export interface PolicyHooks {
  readonly onRequest?: (context: PolicyContext) => RequestOutcome;
  /** Changes the response in place, or resolves with another one. */
  readonly onResponse?: (context: PolicyContext, response: HttpResponse) => undefined | Promise<undefined | LocalReply>;
  /** `onResponse` runs only for responses of backends, not for those that the gateway makes itself. */
  readonly upstreamOnly?: boolean;
  /** `onResponse` also runs for an error of a response policy, which the other response policies do not see. */
  readonly lastWord?: boolean;
}
