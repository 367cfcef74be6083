import { z } from "zod";
import { calledService } from "../calls/schema.ts";
import { conditionally } from "../conditional/schema.ts";
import type { ConfigOf } from "../resolve.ts";
import { defined, type Resolver, resolveEach } from "../resolver.ts";
import { expression } from "../shared/cel-schema.ts";

const descriptor = z.strictObject({
  entries: z
    .array(
      z.strictObject({
        key: z.string().min(1).describe("Name of the entry."),
        value: expression("request").describe("CEL for its value; text, or what can be written as text."),
      }),
    )
    .min(1)
    .describe("What the service counts by, in the order of its configuration."),
  type: z.literal("requests").default("requests").describe("What is counted. Default: `requests`."),
  cost: expression("request").optional().describe("CEL for how much a request counts. Default: 1."),
  limitOverride: expression("request")
    .optional()
    .describe(
      "CEL for a limit in the place of the service's own: a map of `unit` (second, minute, hour, day, month, year) and `requestsPerUnit`.",
    ),
});

const policy = z.strictObject({
  ...calledService("How long an answer may take."),
  domain: z.string().min(1).describe("Domain of the service's configuration."),
  descriptors: z
    .array(descriptor)
    .min(1)
    .describe(
      "One count each. A descriptor that reads what the request lacks is left out; without any, nothing is asked. An expression that cannot be evaluated, or gives what cannot be counted by, counts as a failure of the service.",
    ),
  failureMode: z
    .literal(["failClosed", "failOpen", "FailClosed", "FailOpen"])
    .transform((mode) => (/open$/i.test(mode) ? "failOpen" : "failClosed"))
    .prefault("failClosed")
    .describe("When the service cannot be asked: `failClosed` (500) or `failOpen`. Default: `failClosed`."),
});

export const schema = conditionally(
  "RemoteRateLimit",
  policy.describe("Asks a rate limit service, by Envoy's protocol, whether a request is within its limits; else 429."),
  policy,
);

export type RemoteRateLimit = ConfigOf<typeof policy>;
/** As it is written. */
export type RemoteRateLimitInput = z.output<typeof policy>;
export type RateLimitDescriptor = ConfigOf<typeof descriptor>;

/** `remoteRateLimit` with its service. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver) {
  return resolveEach<RemoteRateLimitInput, RemoteRateLimit>(written, resolver, resolveOne);
}

function resolveOne(written: RemoteRateLimitInput, resolver: Resolver): RemoteRateLimit {
  const { host, service, backend, policies, timeout, ...others } = written;
  return defined({ ...resolver.service({ host, service, backend, policies, timeout }, "grpc"), ...others });
}
