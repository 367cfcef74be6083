import { z } from "zod";
import { type Resolver, resolveCall, resolveEach } from "../contract/resolver.ts";
import { calledService } from "../schema/call.ts";
import { expression } from "../schema/cel.ts";
import { conditionally } from "../schema/conditional.ts";
import type { ConfigOf } from "../schema/resolved.ts";

const descriptor = z.strictObject({
  entries: z
    .array(
      z.strictObject({
        key: z.string().min(1).describe("Name of the entry."),
        value: expression("request").describe("CEL for the value; a string, or a value that converts to one."),
      }),
    )
    .min(1)
    .describe("Entries of the descriptor, in the order of the service's configuration."),
  type: z.literal("requests").default("requests").describe("What is counted. Default: `requests`."),
  cost: expression("request").optional().describe("CEL for the number of hits that a request adds. Default: 1."),
  limitOverride: expression("request")
    .optional()
    .describe(
      "CEL for a limit that replaces the service's own: a map with `unit` (second, minute, hour, day, month, year) and `requestsPerUnit`.",
    ),
});

const policy = z.strictObject({
  ...calledService("Timeout of the call."),
  domain: z.string().min(1).describe("Domain in the configuration of the rate limit service."),
  descriptors: z
    .array(descriptor)
    .min(1)
    .describe(
      "Descriptors, each counted separately. A descriptor that reads an absent value is left out; if none is left, the service is not called. An expression that cannot be evaluated, or returns a value of the wrong type, is treated as a failure of the service.",
    ),
  failureMode: z
    .literal(["failClosed", "failOpen", "FailClosed", "FailOpen"])
    .transform((mode) => (/open$/i.test(mode) ? "failOpen" : "failClosed"))
    .prefault("failClosed")
    .describe("If the service fails: `failClosed` (500) or `failOpen`. Default: `failClosed`."),
});

export const schema = conditionally(
  "RemoteRateLimit",
  policy.describe(
    "Limits requests through an external rate limit service (Envoy's protocol); requests over the limit get 429. Responses carry `x-ratelimit-limit`, `x-ratelimit-remaining` and `x-ratelimit-reset` of the limit with the fewest requests left, where the service names it, and the fields that the service adds; a 429 has `retry-after`, from the service or from its limits.",
  ),
  policy,
);

export type RemoteRateLimit = ConfigOf<typeof policy>;
/** As written by users. */
type RemoteRateLimitInput = z.output<typeof policy>;
export type RateLimitDescriptor = ConfigOf<typeof descriptor>;

/** Looks up the service; see `Resolver.service`. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver) {
  return resolveEach<RemoteRateLimitInput, RemoteRateLimit>(written, resolver, (one, at) =>
    resolveCall(one, at, "grpc"),
  );
}
