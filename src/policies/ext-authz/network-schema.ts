import { z } from "zod";
import { parseDuration } from "../../base/durations.ts";
import { calledService } from "../calls/schema.ts";
import type { ConfigOf, Resolved } from "../resolve.ts";
import { expression } from "../shared/cel-schema.ts";
import { body } from "./schema.ts";

const grpc = z
  .strictObject({
    context: z.record(z.string(), z.string()).optional().describe("Sent as `context_extensions`."),
    metadata: z
      .record(z.string(), expression("network"))
      .optional()
      .describe("Name → CEL, sent as the metadata `envoy.filters.http.ext_authz`."),
  })
  .describe("`envoy.service.auth.v3.Authorization/Check` with both ends of the connection. The default.");

/** Fields of `extAuthz` that are about a request or its answer: the translation warns that they do nothing here. */
const NO_REQUEST = "Accepted, and without effect: there is no request yet, and refused clients get no answer.";

const http = z
  .strictObject({
    path: expression("network").optional().describe("CEL for path and query of the question. Default: `/`."),
    body: expression("network").optional().describe("CEL for the body of the authorization request. Default: none."),
    redirect: z.string().optional().describe(NO_REQUEST),
    includeResponseHeaders: z.array(z.string()).optional().describe(NO_REQUEST),
    addRequestHeaders: z
      .record(z.string(), expression("network"))
      .default({})
      .describe(
        "Headers of the question: name → CEL; `:method`, `:path` and `:authority` too. Nothing else tells the service of the client.",
      ),
    metadata: z
      .record(z.string(), expression("networkResponse"))
      .default({})
      .describe(
        "Name → CEL over the service's `response`; requests on this connection read the value as `extauthz.<name>`.",
      ),
  })
  .describe("A GET: 2xx allows.");

const cache = z.strictObject({
  key: z
    .array(expression("network"))
    .min(1)
    .describe("CEL expressions whose values form the cache key; if one fails, nothing is cached."),
  ttl: expression("network", (text) => parseDuration(text) !== undefined).describe(
    "How long answers serve: a duration, or CEL that gives one, or the time of their end: a timestamp or seconds since 1970.",
  ),
  maxEntries: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(10_000)
    .describe("Answers kept, in each thread and for each port. Default: 10000."),
});

/** `frontendPolicies.networkExtAuthz` (reference 1.10): as `extAuthz`, but about a connection. */
export const networkSchema = z
  .strictObject({
    ...calledService("How long an answer may take."),
    protocol: z
      .union([z.strictObject({ grpc }), z.strictObject({ http })])
      .default({ grpc: {} })
      .describe("Protocol of the service. Default: gRPC."),
    failureMode: z
      .union([z.literal(["allow", "deny"]), z.strictObject({ denyWithStatus: z.int().min(200).max(599) })])
      .default("deny")
      .describe(
        "When the service cannot be asked; `allow` says so in the log, once in ten seconds at most; a status is as good as `deny`. Default: `deny`.",
      ),
    includeRequestHeaders: z.array(z.string()).optional().describe(NO_REQUEST),
    includeRequestBody: body.optional().describe(NO_REQUEST),
    cache: cache.optional().describe("Caches responses: those that allow, and denials with 401 or 403."),
  })
  .meta({
    id: "NetworkExtAuthz",
    description:
      "Asks a service who may connect, once per connection, after `networkAuthorization` and before the first " +
      "request; CEL reads `source`, `destination` and `env`. Who is refused is cut off without an answer.",
  });

type Written = z.output<typeof networkSchema>;
type WrittenHttp = z.output<typeof http>;

/** What runs: without the fields that do nothing for connections. Refused clients get no response that could have a status. */
export type NetworkExtAuthz = Omit<
  Resolved<Written>,
  "protocol" | "failureMode" | "includeRequestHeaders" | "includeRequestBody"
> & {
  readonly protocol:
    | { readonly grpc: ConfigOf<typeof grpc> }
    | { readonly http: Resolved<Omit<WrittenHttp, "redirect" | "includeResponseHeaders">> };
  readonly failureMode: "allow" | "deny";
};
