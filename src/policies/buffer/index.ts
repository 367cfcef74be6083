import type { LocalReply } from "../../http/message.ts";
import type { BufferedSide, Buffering } from "../../ir/policies.ts";
import type { CompiledPolicy, PolicyContext } from "../types.ts";

const KIND = "buffer";

/** Reads bodies whole before they go on (reference 3.24). */
export function create({ request, response }: Buffering): CompiledPolicy {
  return {
    kind: KIND,
    shown: { ...(request !== undefined && { request }), ...(response !== undefined && { response }) },
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
        if (whole !== undefined) trace?.applied(KIND, { response: { bytes: whole.length } });
        else trace?.applied(KIND, { response: { over: limit, failureMode: response.failureMode } });
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
  trace?.applied(KIND, { request: whole === undefined ? { over: limit, failureMode } : { bytes: whole.length } });
  return whole === undefined && failureMode === "failClosed" ? tooLarge() : undefined;
}

function tooLarge(): LocalReply {
  return { status: 413, headers: [], body: "", reason: "InvalidRequest" };
}
