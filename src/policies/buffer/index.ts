/**
 * `buffer`: holds a whole body before any of it is forwarded, so that a slow sender does not occupy a backend (or a client) for
 * as long as it sends (docs/policies/buffer.md). In: the body of the request or response. Out: the same body in one piece, or,
 * where it exceeds the limit, 413 to the client, or 502 in place of the response. Memory comes from the worker's
 * `maxBufferedBytes`; when that is used up, reading the body ends the request with TG_BUFFERS_FULL.
 */
import { applied, Decisions, failed, rejected } from "../contract/decisions.ts";
import type { PolicyContext, PolicyHooks, PolicyTrace } from "../contract/types.ts";
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
        return context.requestBody.empty ? undefined : bufferRequest(request, context);
      },
    }),
    ...(response !== undefined && {
      async onResponse({ responseBody, maxBufferSize, trace }, message) {
        const limit = response.maxBytes ?? maxBufferSize;
        const whole = await responseBody.buffer(limit);
        report(trace, "response", whole, limit, response.failureMode);
        if (whole !== undefined || response.failureMode === "failOpen") return;
        // The head has not been sent yet, so the client gets a complete response instead of a truncated one. The header fields
        // describe a body that is gone.
        message.status = 502;
        message.headers.length = 0;
        responseBody.replace(new Uint8Array(0));
      },
    }),
  };
}

/** 413 with an empty body (docs/policies/buffer.md) for a body that is too long. */
async function bufferRequest(
  { maxBytes, failureMode }: BufferedSide,
  { requestBody, maxBufferSize, trace }: PolicyContext,
): Promise<undefined> {
  const limit = maxBytes ?? maxBufferSize;
  const whole = await requestBody.buffer(limit);
  if (whole === undefined && failureMode === "failClosed")
    throw decisions.reject(trace, { code: "tooLong", side: "request", limit, failureMode }, "TG_BODY_TOO_LARGE", {
      body: "",
    });
  report(trace, "request", whole, limit, failureMode);
}

/** A trace event for one side: its length in bytes, or the limit that it exceeds. */
function report(
  trace: PolicyTrace | undefined,
  side: "request" | "response",
  whole: Uint8Array | undefined,
  limit: number,
  failureMode: BufferedSide["failureMode"],
): void {
  if (whole !== undefined) trace?.report(decisions, { code: "held", side, bytes: whole.length });
  else trace?.report(decisions, { code: "tooLong", side, limit, failureMode });
}
