import type { Expression } from "../../cel/index.ts";
import type { LocalReply } from "../../http/message.ts";
import { editRequest } from "../envoy/headers.ts";
import type { HeaderEdit } from "../shared/header-edits.ts";
import type { BodyStart, PolicyContext } from "../types.ts";

/** What a service says about a request; the same for all requests that it is kept for. */
export type Verdict =
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
export class QuestionError extends Error {}

/** A way to ask a service. */
export interface Asker {
  /** What is evaluated over the request for it. */
  readonly expressions: readonly Expression[];
  /** Removals of the fields that only the service may set: a client must not speak for it where it says nothing. */
  readonly clears: readonly HeaderEdit[];
  /** Rejects when the service gives no usable answer, with QuestionError when it cannot be asked about this request. */
  readonly ask: (context: PolicyContext, body: BodyStart | undefined) => Promise<Verdict>;
}

/** Puts a verdict into effect, as far as it is about the request. */
export function applyVerdict(context: PolicyContext, verdict: Verdict): void {
  if (verdict.metadata !== undefined)
    context.findings.extauthz = { ...(context.findings.extauthz as object | undefined), ...verdict.metadata };
  if (!verdict.allowed) return;
  editRequest(context, verdict.requestEdits);
  for (const edit of verdict.responseEdits) context.editResponse(edit);
}
