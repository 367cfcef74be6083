import { z } from "zod";
import type { Scope } from "../../cel/index.ts";
import { type Resolver, resolveCall, resolveEach } from "../contract/resolver.ts";
import { calledService } from "../schema/call.ts";
import { expression } from "../schema/cel.ts";
import { conditionally } from "../schema/conditional.ts";
import type { ConfigOf } from "../schema/resolved.ts";

const bodyMode = z
  .literal(["none", "buffered", "bufferedPartial", "fullDuplexStreamed"])
  .default("fullDuplexStreamed")
  .describe(
    "`none`: not sent; `buffered`: the whole body, 413 if it exceeds the buffer; `bufferedPartial`: as much as fits the buffer; `fullDuplexStreamed`: in chunks, and the service streams the new body back. Default: `fullDuplexStreamed`.",
  );
const sent = z.literal(["send", "skip"]).default("send").describe("`send` or `skip`. Default: `send`.");
const trailers = sent.describe("Trailers, for messages without Content-Length: `send` or `skip`. Default: `send`.");
const values = (scope: Scope) => z.record(z.string(), expression(scope)).default({});

const options = z.strictObject({
  requestHeaderMode: sent,
  responseHeaderMode: sent,
  requestBodyMode: bodyMode,
  responseBodyMode: bodyMode,
  requestTrailerMode: trailers,
  responseTrailerMode: trailers,
  allowModeOverride: z.boolean().default(false).describe("Whether the service may change these modes. Default: false."),
});

const policy = z.strictObject({
  ...calledService(
    "Timeout of the response to each message; the service may extend it once per message, up to ten times the configured value.",
  ),
  failureMode: z
    .literal(["failClosed", "failOpen"])
    .default("failClosed")
    .describe(
      "If the service fails: `failClosed` (500), or `failOpen` as long as no part of a body has been sent to it. Default: `failClosed`.",
    ),
  metadataContext: z
    .record(z.string(), values("request"))
    .default({})
    .describe("Metadata of each message: namespace → name → CEL."),
  requestAttributes: values("request").describe("Attributes sent with the request: name → CEL."),
  responseAttributes: values("response").describe("Attributes sent with the response: name → CEL."),
  processingOptions: options.prefault({}).describe("Which parts are sent to the service, and how."),
});

export const schema = conditionally(
  "ExtProc",
  policy.describe(
    "Sends requests and responses through an external service (Envoy's ext_proc protocol), which can change headers, bodies and trailers, or respond itself. To change which route matches, the policy must run in the gateway phase, before route matching.",
  ),
  policy,
);

export type ExtProc = ConfigOf<typeof policy>;
/** As written by users. */
type ExtProcInput = z.output<typeof policy>;
export type ExtProcOptions = ConfigOf<typeof options>;
export type ExtProcBodyMode = z.output<typeof bodyMode>;

/** Looks up the service; see `Resolver.service`. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver) {
  return resolveEach<ExtProcInput, ExtProc>(written, resolver, (one, at) => resolveCall(one, at, "grpc"));
}
