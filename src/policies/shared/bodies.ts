import { GatewayError } from "../../base/errors.ts";
import type { Expression } from "../../cel/index.ts";
import type { PolicyContext, RequestOutcome } from "../types.ts";

/** Which bodies expressions read: they are there only after somebody has waited for them. */
export interface BodyNeeds {
  readonly request: boolean;
  readonly response: boolean;
}

export function bodyNeeds(expressions: Iterable<Expression>): BodyNeeds {
  let request = false;
  let response = false;
  for (const { reads } of expressions) {
    request ||= reads.has("request.body") || reads.has("request.bodyPrefix");
    response ||= reads.has("response.body") || reads.has("response.bodyPrefix");
  }
  return { request, response };
}

/**
 * Waits for a body, at most `maxBufferSize` bytes of it; longer ones stay unknown to expressions, and flow on. What a
 * response's expressions read of the request has to be waited for on the request's side: later it has flown past.
 */
export function bufferBody(context: PolicyContext, side: "request" | "response"): Promise<Uint8Array | undefined> {
  return (side === "request" ? context.requestBody : context.responseBody).buffer(context.maxBufferSize);
}

/** Runs `work` once the request's body is there when one of the expressions reads it, else at once. */
export function afterRequestBody(
  expressions: Iterable<Expression>,
  work: (context: PolicyContext) => RequestOutcome,
): (context: PolicyContext) => RequestOutcome {
  if (!bodyNeeds(expressions).request) return work;
  return async (context) => {
    await bufferBody(context, "request");
    return work(context);
  };
}

/**
 * As `afterRequestBody`, for what may refuse the request. A body that is too long to be looked at ends it with
 * TG_BODY_TOO_LARGE: let through, it would get past what the expressions say about it.
 */
export function afterWholeBody(
  expressions: Iterable<Expression>,
  work: (context: PolicyContext) => RequestOutcome,
): (context: PolicyContext) => RequestOutcome {
  if (!bodyNeeds(expressions).request) return work;
  return async (context) => {
    if ((await bufferBody(context, "request")) === undefined) throw new GatewayError("TG_BODY_TOO_LARGE");
    return work(context);
  };
}

/** Text as header lists carry it: one latin1 character for each byte of its UTF-8. */
export function headerText(text: string): string {
  for (let i = 0; i < text.length; i++)
    if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, "utf8").toString("latin1");
  return text;
}
