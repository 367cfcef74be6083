import { ERRORS } from "../../base/errors.ts";
import { type Activation, type Expression, overlaid } from "../../cel/index.ts";
import { getHeader, type LocalReply } from "../../http/message/message.ts";
import type { Callout } from "../../upstream/callouts/callout.ts";
import { isUnreadable } from "../../upstream/callouts/http-call.ts";
import type { Decisions } from "../contract/decisions.ts";
import type { HeaderEdit } from "../contract/header-edits.ts";
import type { BodyStart, CalloutContext, PolicyContext } from "../contract/types.ts";
import { editRequest, type InvalidTarget } from "../envoy/convert.ts";

/** Decision about a request, derived from a response of the service. */
export type AuthzDecision =
  | {
      readonly allowed: true;
      readonly requestEdits: readonly HeaderEdit[];
      readonly responseEdits: readonly HeaderEdit[];
      readonly metadata: Readonly<Record<string, unknown>> | undefined;
    }
  | {
      readonly allowed: false;
      /** undefined: the gateway's own 403. */
      readonly reply: LocalReply | undefined;
      readonly metadata: Readonly<Record<string, unknown>> | undefined;
    };

/**
 * The authorization request cannot be made from this request. It counts as a denial even with `failureMode: allow`: clients can
 * cause it, and would otherwise bypass the service.
 */
export class AuthzRequestError extends Error {}

/**
 * Whether `failureMode: allow` excuses a failure: not if a client may have caused it, by its request or through the service's response, such
 * as a redirect that repeats a long URL.
 */
export function isExcused(error: unknown): boolean {
  return !(error instanceof AuthzRequestError || isUnreadable(error));
}

/** A client for one protocol of authorization services, with the cache of their responses. */
export interface AuthzClient {
  /** Expressions over the request, so that the policy waits for a body that one of them reads. */
  readonly expressions: readonly Expression[];
  /** Removes the fields that only the service may set: if it leaves one out, the client's field must not take its place. */
  readonly clears: readonly HeaderEdit[];
  /**
   * Resolves with the decision, and whether the response behind it was cached. Rejects if the service gives no usable response; with
   * AuthzRequestError if there is no request to send.
   */
  readonly check: (
    callout: Callout<CalloutContext>,
    context: PolicyContext,
    body: BodyStart | undefined,
  ) => Promise<{ readonly decision: AuthzDecision; readonly cached: boolean }>;
}

/** Status of a denial; undefined = allowed. */
export function denialStatus(decision: AuthzDecision): number | undefined {
  return decision.allowed ? undefined : (decision.reply?.status ?? ERRORS.TG_EXT_AUTHZ.status);
}

/** Whether the client gets a cookie, such as that of a new session: such a response is for this client only and must not be cached. */
export function setsCookie(decision: AuthzDecision): boolean {
  if (!decision.allowed)
    return decision.reply !== undefined && getHeader(decision.reply.headers, "set-cookie") !== undefined;
  return decision.responseEdits.some(({ action, name }) => name === "set-cookie" && action !== "remove");
}

/** Variables for the time to live of a cached response; `extauthz` has its value after the decision is applied. */
export function decidedVariables(
  { variables, requestMetadata }: PolicyContext,
  { metadata }: AuthzDecision,
): Activation {
  if (metadata === undefined) return variables;
  return overlaid(variables, { extauthz: { ...(requestMetadata.extauthz as object | undefined), ...metadata } });
}

/** Applies metadata and header edits of a decision. The caller sends the response of a denial. */
export function applyDecision(
  context: PolicyContext,
  decision: AuthzDecision,
  decisions: Decisions<InvalidTarget>,
): void {
  if (decision.metadata !== undefined)
    context.requestMetadata.extauthz = {
      ...(context.requestMetadata.extauthz as object | undefined),
      ...decision.metadata,
    };
  if (!decision.allowed) return;
  editRequest(context, decision.requestEdits, decisions);
  for (const edit of decision.responseEdits) context.editResponse(edit);
}
