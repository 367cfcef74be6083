import { z } from "zod";
import { expression } from "../schema/cel.ts";
import { conditionally } from "../schema/conditional.ts";
import type { ConfigOf } from "../schema/resolved.ts";

/** Far above what a process can serve at once; sums of counts stay exact. */
const MOST_REQUESTS = 1_000_000;

const limit = z
  .strictObject({
    maxRequests: z
      .int()
      .min(1)
      .max(MOST_REQUESTS)
      .describe("Requests that may be in progress at once, for each value of `key`."),
    key: expression("request")
      .optional()
      .describe(
        "CEL. Each value has its own count: `source.address` makes it a limit per client. Requests for which the expression fails share one count. Default: one count for all requests.",
      ),
  })
  .meta({ id: "ConcurrencyLimit", description: "A limit of requests in progress." });

const limits = z
  .array(limit)
  .min(1)
  .describe(
    "Limits how many requests are in progress at the same time, across all threads of the process. A limit counts the requests of all routes and listeners that it applies to together: written at a route or listener, those of it; as an entry of `policies` or a TracegatePolicy of a gateway, those of the gateway. For a count for each route, give it the key `proxy.route.name`. A request counts toward every limit in the list until its response has been sent or its client is gone. A WebSocket, a `CONNECT` tunnel and a gRPC stream count until they end. A request beyond a limit gets 429 with `x-ratelimit-limit` and `x-ratelimit-remaining: 0`, and counts toward none. There is no `retry-after`, because the gateway cannot know when another request will end. Retries and mirrored requests do not count again. Counts survive reloads. To find out which limit suits, try one with `shadow: true`: `tracegate_policy_shadow_total` counts what it would reject. Each of the first 32 limits with a `key` has room for about 40,000 values with requests in progress, each further one for about 700. While a limit has no room, requests with new values share one count, and `tracegate_concurrency_limit_overflow_total` counts them.",
  );

export const schema = conditionally("ConcurrencyLimit", limits, limit);

export type ConcurrentLimit = ConfigOf<typeof limit>;
/** Applied in order. */
export type ConcurrencyLimit = readonly ConcurrentLimit[];
