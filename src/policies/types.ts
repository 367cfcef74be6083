import type { HttpRequest, HttpResponse, LocalReply } from "../http/message.ts";
import type { PolicyKind } from "../ir/policies.ts";

/** What a policy may see and change of one exchange. */
export interface PolicyContext {
  readonly request: HttpRequest;
  /** The prefix that the selected route's match consumed (`/` when none, undefined for exact and regex matches). */
  readonly matchedPrefix: string | undefined;
  /** Present only while this request is being traced: where a policy reports what it did and why. */
  readonly trace: PolicyTrace | undefined;
  /** Set by timeout; milliseconds from request start, 0 = none. */
  requestTimeout: number;
  /** Set by timeout; milliseconds per attempt, 0 = none. */
  backendRequestTimeout: number;
  /** Set by urlRewrite: `auto` = the upstream host becomes the target's hostname (default), `fixed` = leave the authority. */
  authorityMode: "auto" | "fixed";
}

export interface PolicyTrace {
  /** Emits `policy` with result `apply`; `before`/`after` become its snapshot. */
  applied(kind: string, details: unknown, before?: unknown, after?: unknown): void;
  /** Emits `policy` with result `skip`. */
  skipped(kind: string, reason: string): void;
}

/** undefined = go on; a reply ends the request side. Synchronous wherever it can be: a promise costs a turn of the event loop. */
export type RequestOutcome = undefined | LocalReply | Promise<undefined | LocalReply>;

/** A policy compiled once per configuration; holds no state of a request. Hooks throw `GatewayError` to reject. */
export interface CompiledPolicy {
  readonly kind: PolicyKind;
  /** The value shown in `effectivePolicy`; secrets already redacted. */
  readonly shown: unknown;
  readonly onRequest?: (context: PolicyContext) => RequestOutcome;
  readonly onResponse?: (context: PolicyContext, response: HttpResponse) => void;
}
