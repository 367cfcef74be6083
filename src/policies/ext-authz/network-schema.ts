import { z } from "zod";
import { parseDuration } from "../../base/durations.ts";
import { calledService } from "../calls/schema.ts";
import { expression } from "../shared/cel-schema.ts";

const http = z
  .strictObject({
    path: expression("network").optional().describe("CEL for path and query of the question. Default: `/`."),
    addRequestHeaders: z
      .record(z.string(), expression("network"))
      .default({})
      .describe("Headers of the question: name → CEL. Nothing else tells the service of the client."),
    metadata: z
      .record(z.string(), expression("networkResponse"))
      .default({})
      .describe("Name → CEL over the answer as `response`; requests on this connection read it as `extauthz.<name>`."),
  })
  .describe("A GET without body: 2xx allows.");

const cache = z.strictObject({
  key: z
    .array(expression("network"))
    .min(1)
    .describe("CEL expressions whose values together are the key; when one fails, nothing is cached."),
  ttl: expression("network", (text) => parseDuration(text) !== undefined).describe(
    "How long answers serve: a duration, or CEL that gives one.",
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
    protocol: z.strictObject({ http }).describe("How the service is asked."),
    failureMode: z
      .literal(["allow", "deny"])
      .default("deny")
      .describe(
        "When the service cannot be asked; `allow` says so in the log, once in ten seconds at most. Default: `deny`.",
      ),
    cache: cache.optional().describe("Keeps answers: who was allowed, and refusals with 401 or 403."),
  })
  .meta({
    id: "NetworkExtAuthz",
    description:
      "Asks a service over HTTP who may connect, once per connection, after `networkAuthorization` and before the first " +
      "request; CEL reads `source`, `destination` and `env`. Who is refused is cut off without an answer.",
  });
