/**
 * `buffer`: holds a whole body before any of it is forwarded, so that a slow sender does not occupy a backend (or a client) for
 * as long as it sends (docs/policies/buffer.md). In: the body of the request or response. Out: the same body in one piece, or,
 * where it exceeds the limit, 413 to the client, or 502 in place of the response. Memory comes from the worker's
 * `maxBufferedBytes`; when that is used up, reading the body ends the request with TG_BUFFERS_FULL.
 */
import type { LocalReply } from "../../http/message/message.ts";
import type { PolicyContext, PolicyHooks, PolicyTrace } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { BufferedSide, Buffering } from "./schema.ts";

const KIND = "buffer";

export const buffer = definePolicy({
  kind: KIND,
  phases: ["route"],
  traceStage: "buffer",
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

/** Resolves with the reply that rejects the request, or undefined to continue. */
async function bufferRequest(
  { maxBytes, failureMode }: BufferedSide,
  { requestBody, maxBufferSize, trace }: PolicyContext,
): Promise<undefined | LocalReply> {
  const limit = maxBytes ?? maxBufferSize;
  const whole = await requestBody.buffer(limit);
  report(trace, "request", whole, limit, failureMode);
  return whole === undefined && failureMode === "failClosed" ? tooLarge() : undefined;
}

/** A trace event for one side: its length in bytes, or the limit that it exceeds. */
function report(
  trace: PolicyTrace | undefined,
  side: string,
  whole: Uint8Array | undefined,
  limit: number,
  failureMode: BufferedSide["failureMode"],
): void {
  if (whole !== undefined) trace?.applied(KIND, { [side]: { bytes: whole.length } });
  else if (failureMode === "failOpen") trace?.failed(KIND, { [side]: { over: limit, failureMode } });
  else trace?.decided(KIND, false, { [side]: { over: limit, failureMode } });
}

/** 413 with an empty body (docs/policies/buffer.md); the error TG_BODY_TOO_LARGE would have a text. */
function tooLarge(): LocalReply {
  return { status: 413, headers: [], body: "", reason: "InvalidRequest" };
}
