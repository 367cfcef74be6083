import type { Expression } from "../../cel/index.ts";
import type { LocalReply } from "../../http/message.ts";
import type { Callout } from "../../upstream/callout.ts";
import { editRequest } from "../envoy/convert.ts";
import type { HeaderEdit } from "../shared/header-edits.ts";
import type { BodyStart, CalloutContext, PolicyContext } from "../types.ts";

/** What a service says about a request; the same for all requests that it is kept for. */
export type AuthzDecision =
  | {
      readonly allowed: true;
      readonly requestEdits: readonly HeaderEdit[];
      readonly responseEdits: readonly HeaderEdit[];
      readonly metadata: Readonly<Record<string, unknown>> | undefined;
    }
  | {
      readonly allowed: false;
      /** undefined: the gateway's own refusal. */
      readonly reply: LocalReply | undefined;
      readonly metadata: Readonly<Record<string, unknown>> | undefined;
    };

/** What is to be asked cannot be made of the request. That is no failure of the service: clients could bring it about. */
export class AuthzRequestError extends Error {}

/** A way to ask a service. */
export interface AuthzClient {
  /** What is evaluated over the request for it. */
  readonly expressions: readonly Expression[];
  /** Removals of the fields that only the service may set: a client must not speak for it where it says nothing. */
  readonly clears: readonly HeaderEdit[];
  /** Rejects when the service gives no usable answer, with AuthzRequestError when it cannot be asked about this request. */
  readonly check: (
    callout: Callout<CalloutContext>,
    context: PolicyContext,
    body: BodyStart | undefined,
  ) => Promise<AuthzDecision>;
}

/** Puts a decision into effect, as far as it is about the request. */
export function applyDecision(context: PolicyContext, decision: AuthzDecision): void {
  if (decision.metadata !== undefined)
    context.requestMetadata.extauthz = {
      ...(context.requestMetadata.extauthz as object | undefined),
      ...decision.metadata,
    };
  if (!decision.allowed) return;
  editRequest(context, decision.requestEdits);
  for (const edit of decision.responseEdits) context.editResponse(edit);
}
