import { z } from "zod";
import { parseDuration } from "../../base/durations.ts";
import { type Resolver, resolveCall, resolveEach } from "../contract/resolver.ts";
import { calledService } from "../schema/call.ts";
import { expression } from "../schema/cel.ts";
import { conditionally } from "../schema/conditional.ts";
import { size } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

/** Header names, compared in lower case. */
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
      .describe("Name → CEL, sent as filter metadata of `envoy.filters.http.ext_authz`."),
  })
  .describe("Envoy's `envoy.service.auth.v3.Authorization/Check`. The default.");

const http = z
  .strictObject({
    path: expression("request")
      .optional()
      .describe("CEL for the path and query of the authorization request. Default: those of the request."),
    redirect: expression("request")
      .optional()
      .describe("CEL for a URL. A 401 or 403 from the service becomes a redirect (302) to it."),
    body: expression("request").optional().describe("CEL for the body of the authorization request."),
    includeResponseHeaders: names
      .default([])
      .describe(
        "Headers of the service's response that are also sent to the backend. Fields that the client sent under these names are removed.",
      ),
    addRequestHeaders: z
      .record(z.string(), expression("request"))
      .default({})
      .describe(
        "Headers of the authorization request: name → CEL, instead of those of the request; `:method`, `:path` and `:authority` set method, path and authority.",
      ),
    metadata: z
      .record(z.string(), expression("response"))
      .default({})
      .describe("Name → CEL over the service's `response`; expressions read the value as `extauthz.<name>`."),
  })
  .describe("Plain HTTP: the service receives the request's method, path and Authorization; 2xx allows.");

/** How much of a request body the service gets. */
export const body = z.strictObject({
  maxRequestBytes: size({ max: 16 * 1024 * 1024 })
    .prefault("8KiB")
    .describe(
      "Maximum bytes of the body that the service gets; longer bodies are handled as `allowPartialMessage` says. Default: 8192.",
    ),
  allowPartialMessage: z
    .boolean()
    .default(false)
    .describe("Truncates longer bodies; otherwise they are rejected with 413. Default: false."),
  packAsBytes: z
    .boolean()
    .default(false)
    .describe("For gRPC: sends the body as `raw_body`, not as text. Default: false."),
});

/** Parts that a cache may leave out of its keys. */
const ignored = z.string().regex(/^(?:method|path|query|body|source\.address|headers\.[!#$%&'*+.^_`|~0-9a-z-]+)$/, {
  message:
    "cannot be left out of the key; write method, path, query, body, source.address or headers.NAME in lower case",
});

/** `scope`: what the expressions read. */
export const cacheOf = (scope: "request" | "network") =>
  z.strictObject({
    key: z
      .array(expression(scope))
      .default([])
      .describe(
        "CEL expressions whose values are added to the cache key; if one fails, nothing is cached. The key always contains everything that the service is sent.",
      ),
    ignore: z
      .array(ignored)
      .default([])
      .describe(
        "Parts of what the service is sent that are left out of the cache key, so that requests which differ only there share a decision: `method`, `path` (with the query), `query`, `body`, `source.address` or `headers.NAME` in lower case. `x-request-id`, `traceparent`, `tracestate`, the time and the client's port are never part of it.",
      ),
    ttl: expression(scope, (text) => parseDuration(text) !== undefined).describe(
      "How long decisions are cached: a duration, or CEL that returns a duration, or the expiry as a timestamp or in Unix seconds.",
    ),
    maxEntries: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(10_000)
      .describe("Maximum entries in each worker. Default: 10000."),
  });

const policy = z.strictObject({
  ...calledService("Deadline for the authorization response."),
  protocol: z
    .union([z.strictObject({ grpc }), z.strictObject({ http })])
    .default({ grpc: {} })
    .describe("Protocol of the service. Default: gRPC."),
  failureMode: z
    .union([z.literal(["allow", "deny"]), z.strictObject({ denyWithStatus: z.int().min(200).max(599) })])
    .default("deny")
    .describe(
      "If the service fails: `allow`, `deny` (403), or another status. An unreadable response always denies. Default: `deny`.",
    ),
  includeRequestHeaders: names
    .default([])
    .describe("Request headers that are sent to the service. Default: all for gRPC, Authorization for HTTP."),
  includeRequestBody: body.optional().describe("Sends the body to the service. Default: the body is not sent."),
  cache: cacheOf("request")
    .optional()
    .describe(
      "Caches decisions: those that allow, and denials with 401 or 403, except those that set a cookie for the client. Requests share a decision if the service would be sent the same for both. The CEL of `ttl` can read `extauthz`, the metadata of the decision.",
    ),
});

export const schema = conditionally(
  "ExtAuthz",
  policy.describe("Delegates authorization to an external service, by Envoy's ext_authz protocol or plain HTTP."),
  policy,
);

/** What runs, for one service: the target in place of its name. */
export type ExtAuthz = ConfigOf<typeof policy>;
/** As users write it. */
type ExtAuthzInput = z.output<typeof policy>;
export type ExtAuthzGrpc = ConfigOf<typeof grpc>;
export type ExtAuthzHttp = ConfigOf<typeof http>;

/** `extAuthz`, or each of its alternatives, with the service as a target. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver) {
  return resolveEach<ExtAuthzInput, ExtAuthz>(written, resolver, (one, at) =>
    resolveCall(one, at, "http" in one.protocol ? "http" : "grpc"),
  );
}
