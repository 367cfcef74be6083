import type { LocalReply } from "../../http/message.ts";
import { definePolicy } from "../policy.ts";
import type { PolicyContext, PolicyHooks, PolicyTrace } from "../types.ts";
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

/** Reads bodies whole before they go on (reference 3.24). */
function hooksOf({ request, response }: Buffering): PolicyHooks {
  return {
    ...(request !== undefined && {
      onRequest(context) {
        // Most requests have no body to wait for.
        return context.requestBody.empty ? undefined : bufferRequest(request, context);
      },
    }),
    ...(response !== undefined && {
      async onResponse({ responseBody, maxBufferSize, trace }, message) {
        const limit = response.maxBytes ?? maxBufferSize;
        const whole = await responseBody.buffer(limit);
        report(trace, "response", whole, limit, response.failureMode);
        if (whole !== undefined || response.failureMode === "failOpen") return;
        message.status = 502;
        message.headers.length = 0;
        responseBody.replace(new Uint8Array(0));
      },
    }),
  };
}

async function bufferRequest(
  { maxBytes, failureMode }: BufferedSide,
  { requestBody, maxBufferSize, trace }: PolicyContext,
): Promise<undefined | LocalReply> {
  const limit = maxBytes ?? maxBufferSize;
  const whole = await requestBody.buffer(limit);
  report(trace, "request", whole, limit, failureMode);
  return whole === undefined && failureMode === "failClosed" ? tooLarge() : undefined;
}

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

function tooLarge(): LocalReply {
  return { status: 413, headers: [], body: "", reason: "InvalidRequest" };
}
