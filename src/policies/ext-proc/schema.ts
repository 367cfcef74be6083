import { z } from "zod";
import type { Scope } from "../../cel/index.ts";
import { calledService } from "../calls/schema.ts";
import { conditionally } from "../conditional/schema.ts";
import type { ConfigOf } from "../resolve.ts";
import { defined, type Resolver, resolveEach } from "../resolver.ts";
import { expression } from "../shared/cel-schema.ts";

const bodyMode = z
  .literal(["none", "buffered", "bufferedPartial", "fullDuplexStreamed"])
  .default("fullDuplexStreamed")
  .describe(
    "`none`: the body flows past; `buffered`: whole, 413 when it is too long for the buffer; `bufferedPartial`: as much as the buffer takes; `fullDuplexStreamed`: piece by piece, and the service gives the pieces of another. Default: `fullDuplexStreamed`.",
  );
const sent = z.literal(["send", "skip"]).default("send").describe("`send` or `skip`. Default: `send`.");
const trailers = sent.describe(
  "Trailers, of messages that do not announce their length: `send` or `skip`. Default: `send`.",
);
const values = (scope: Scope) => z.record(z.string(), expression(scope)).default({});

const options = z.strictObject({
  requestHeaderMode: sent,
  responseHeaderMode: sent,
  requestBodyMode: bodyMode,
  responseBodyMode: bodyMode,
  requestTrailerMode: trailers,
  responseTrailerMode: trailers,
  allowModeOverride: z.boolean().default(false).describe("The service may change these modes. Default: false."),
});

const policy = z.strictObject({
  ...calledService(
    "How long the answer to a message may take; the service may ask for up to ten times of it, once for each message.",
  ),
  failureMode: z
    .literal(["failClosed", "failOpen"])
    .default("failClosed")
    .describe(
      "When the service fails: `failClosed` (500), or `failOpen` as long as no part of a body has gone to it. Default: `failClosed`.",
    ),
  metadataContext: z
    .record(z.string(), values("request"))
    .default({})
    .describe("Metadata of each message: namespace → name → CEL."),
  requestAttributes: values("request").describe("Attributes that go with the request: name → CEL."),
  responseAttributes: values("response").describe("Attributes that go with the response: name → CEL."),
  processingOptions: options.prefault({}).describe("Which parts the service gets, and how."),
});

export const schema = conditionally(
  "ExtProc",
  policy.describe(
    "Sends requests and responses through a service by Envoy's ext_proc protocol; it may change headers, bodies and trailers, or answer itself. For another route the policy has to run in the gateway phase, before the route is chosen.",
  ),
  policy,
);

export type ExtProc = ConfigOf<typeof policy>;
/** As it is written. */
export type ExtProcInput = z.output<typeof policy>;
export type ExtProcOptions = ConfigOf<typeof options>;
export type ExtProcBodyMode = z.output<typeof bodyMode>;

/** `extProc` with its service. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver) {
  return resolveEach<ExtProcInput, ExtProc>(written, resolver, resolveOne);
}

function resolveOne(written: ExtProcInput, resolver: Resolver): ExtProc {
  const { host, service, backend, policies, timeout, ...others } = written;
  return defined({ ...resolver.service({ host, service, backend, policies, timeout }, "grpc"), ...others });
}
