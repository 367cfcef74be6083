import { z } from "zod";
import { parseDuration } from "../../base/durations.ts";
import { calledService } from "../calls/schema.ts";
import { conditionally } from "../conditional/schema.ts";
import type { ConfigOf } from "../resolve.ts";
import { defined, type Resolver, resolveEach } from "../resolver.ts";
import { expression } from "../shared/cel-schema.ts";

const names = z.array(
  z
    .string()
    .min(1)
    .transform((name) => name.toLowerCase()),
);

const grpc = z
  .strictObject({
    context: z.record(z.string(), z.string()).optional().describe("Sent as `context_extensions`."),
    metadata: z
      .record(z.string(), expression("request"))
      .optional()
      .describe("Name → CEL, sent as the metadata `envoy.filters.http.ext_authz`."),
  })
  .describe("Envoy's `envoy.service.auth.v3.Authorization/Check`. The default.");

const http = z
  .strictObject({
    path: expression("request")
      .optional()
      .describe("CEL for path and query of the question. Default: those of the request."),
    redirect: expression("request").optional().describe("CEL for a URL: a 401 or 403 becomes a redirect (302) to it."),
    body: expression("request").optional().describe("CEL for the body of the question."),
    includeResponseHeaders: names
      .default([])
      .describe(
        "Headers of the answer that the backend gets too; never those that a client has sent under these names.",
      ),
    addRequestHeaders: z
      .record(z.string(), expression("request"))
      .default({})
      .describe(
        "Headers of the question: name → CEL, in place of those of the request; `:method`, `:path` and `:authority` are the question's own.",
      ),
    metadata: z
      .record(z.string(), expression("response"))
      .default({})
      .describe("Name → CEL over the answer as `response`; expressions read it as `extauthz.<name>`."),
  })
  .describe("A plain HTTP service: the request's method, path and Authorization go to it; 2xx allows.");

/** How much of a request's body a service gets. */
export const body = z.strictObject({
  maxRequestBytes: z
    .int()
    .min(0)
    .max(16 * 1024 * 1024)
    .default(8192)
    .describe("Bytes of the body; 0 = it must have none. Default: 8192."),
  allowPartialMessage: z
    .boolean()
    .default(false)
    .describe("Longer bodies are cut; otherwise they are refused with 413. Default: false."),
  packAsBytes: z.boolean().default(false).describe("For gRPC: send `raw_body` instead of text. Default: false."),
});

const cache = z.strictObject({
  key: z
    .array(expression("request"))
    .min(1, { message: "must not be empty, or all clients would share one answer; name what tells them apart" })
    .describe("CEL expressions whose values together are the key; when one fails, nothing is cached."),
  ttl: expression("request", (text) => parseDuration(text) !== undefined).describe(
    "How long answers are cached: a duration, or CEL, also over the service's answer, that gives a duration or the expiry as a timestamp or Unix seconds.",
  ),
  maxEntries: z.int().min(1).max(1_000_000).default(10_000).describe("Entries kept by each worker. Default: 10000."),
});

const policy = z.strictObject({
  ...calledService("How long an answer may take."),
  protocol: z
    .union([z.strictObject({ grpc }), z.strictObject({ http })])
    .default({ grpc: {} })
    .describe("How the service is asked. Default: gRPC."),
  failureMode: z
    .union([z.literal(["allow", "deny"]), z.strictObject({ denyWithStatus: z.int().min(200).max(599) })])
    .default("deny")
    .describe("When the service cannot be asked: `allow`, `deny` (403), or another status. Default: `deny`."),
  includeRequestHeaders: names
    .default([])
    .describe("Headers that the service gets. Default: all for gRPC, Authorization for HTTP."),
  includeRequestBody: body.optional().describe("Sends the body too. Default: it is not read."),
  cache: cache.optional().describe("Keeps answers: who was allowed, and refusals with 401 or 403."),
});

export const schema = conditionally(
  "ExtAuthz",
  policy.describe("Asks a service whether a request is allowed, by Envoy's ext_authz protocol or plain HTTP."),
  policy,
);

export type ExtAuthz = ConfigOf<typeof policy>;
/** As it is written. */
export type ExtAuthzInput = z.output<typeof policy>;
export type ExtAuthzGrpc = ConfigOf<typeof grpc>;
export type ExtAuthzHttp = ConfigOf<typeof http>;

/** `extAuthz` with its service. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver) {
  return resolveEach<ExtAuthzInput, ExtAuthz>(written, resolver, resolveOne);
}

function resolveOne(written: ExtAuthzInput, resolver: Resolver): ExtAuthz {
  const { host, service, backend, policies, timeout, ...others } = written;
  const protocol = "http" in others.protocol ? "http" : "grpc";
  return defined({ ...resolver.service({ host, service, backend, policies, timeout }, protocol), ...others });
}
