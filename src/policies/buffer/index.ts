import type { LocalReply } from "../../http/message.ts";
import type { Buffering } from "../../ir/policies.ts";
import type { CompiledPolicy } from "../types.ts";

const KIND = "buffer";

/** Reads bodies whole before they go on (reference 3.24). */
export function create({ request, response }: Buffering): CompiledPolicy {
  return {
    kind: KIND,
    shown: { ...(request !== undefined && { request }), ...(response !== undefined && { response }) },
    ...(request !== undefined && {
      async onRequest({ requestBody, maxBufferSize, trace }) {
        const limit = request.maxBytes ?? maxBufferSize;
        const whole = await requestBody.buffer(limit);
        if (whole !== undefined) trace?.applied(KIND, { request: { bytes: whole.length } });
        else trace?.applied(KIND, { request: { over: limit, failureMode: request.failureMode } });
        return whole === undefined && request.failureMode === "failClosed" ? tooLarge() : undefined;
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

function tooLarge(): LocalReply {
  return { status: 413, headers: [], body: "", reason: "InvalidRequest" };
}
