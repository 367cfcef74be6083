/**
 * `buffer`: holds a whole body before any of it is forwarded, so that a slow sender does not occupy a backend (or a client) for
 * as long as it sends (docs/policies/buffer.md). In: the body of the request or response. Out: the same body in one piece, or,
 * where it exceeds the limit, 413 to the client, or 502 in place of the response. Memory comes from the worker's
 * `maxBufferedBytes`; when that is used up, reading the body ends the request with TG_BUFFERS_FULL.
 */
import { applied, Decisions, failed, rejected } from "../contract/decisions.ts";
import type { MessageBody, PolicyContext, PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { BufferedSide, Buffering } from "./schema.ts";

const KIND = "buffer";

type BufferDecision =
  | { readonly code: "held"; readonly side: "request" | "response"; readonly bytes: number }
  | {
      readonly code: "tooLong";
      readonly side: "request" | "response";
      readonly limit: number;
      readonly failureMode: BufferedSide["failureMode"];
    };

const decisions = new Decisions<BufferDecision>(KIND, {
  held: ({ side, bytes }) => applied(`holds the whole ${side} body, ${bytes} bytes`, { [side]: { bytes } }),
  tooLong: ({ side, limit, failureMode }) => {
    const open = failureMode === "failOpen";
    const text = `the ${side} body is longer than ${limit} bytes (maxBytes, or else maxBufferSize)${open ? "; it is forwarded as it arrives (failOpen)" : ""}`;
    return (open ? failed : rejected)(text, { [side]: { over: limit, failureMode } });
  },
});

export const buffer = definePolicy({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare: (config: Buffering) => () => hooksOf(config),
  redact: (config) => config,
  // The outer level is nearer to the gateway, which knows how much it can hold.
  merge: (outer) => outer,
});

/** Waits for the bodies of the configured sides. The chain continues when the last byte has arrived or the limit is exceeded. */
function hooksOf({ request, response }: Buffering): PolicyHooks {
  return {
    ...(request !== undefined && {
      onRequest(context) {
        // Most requests have no body: no promise, so no turn of the event loop.
        return context.requestBody.empty ? undefined : hold("request", context.requestBody, request, context);
      },
    }),
    ...(response !== undefined && {
      // The head has not been sent yet, so the client gets a complete response instead of a truncated one.
      onResponse: (context) => hold("response", context.responseBody, response, context),
    }),
  };
}

/** Rejects with 413 or 502 and an empty body (docs/policies/buffer.md) for a body that is too long. */
async function hold(
  side: "request" | "response",
  body: MessageBody,
  { maxBytes, failureMode }: BufferedSide,
  { maxBufferSize, trace }: PolicyContext,
): Promise<undefined> {
  const limit = maxBytes ?? maxBufferSize;
  const whole = await body.buffer(limit);
  if (whole !== undefined) {
    trace?.report(decisions, { code: "held", side, bytes: whole.length });
    return;
  }
  const tooLong = { code: "tooLong", side, limit, failureMode } as const;
  if (failureMode === "failOpen") trace?.report(decisions, tooLong);
  else throw decisions.reject(trace, tooLong, TOO_LARGE[side], { body: "" });
}

const TOO_LARGE = { request: "TG_BODY_TOO_LARGE", response: "TG_RESPONSE_TOO_LARGE" } as const;
