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
        "CEL; each value has its own count, such as `source.address` for a limit per client. Requests for which it fails share a count, and so do requests with new values while the limit's room for values is full: see above. Default: one count for all requests.",
      ),
  })
  .meta({ id: "ConcurrencyLimit", description: "A limit of requests in progress." });

const limits = z
  .array(limit)
  .min(1)
  .describe(
    "Limits how many requests of a route, or in the gateway phase of a listener, are in progress at once, across all threads of the process. A request counts in every limit of the list, from this policy until its response has been sent or its client has gone; a WebSocket, a `CONNECT` tunnel and a gRPC stream count until they end. If one of the limits is reached, the response is 429 with `x-ratelimit-limit` and `x-ratelimit-remaining: 0`, and the request counts nowhere; there is no `retry-after`, because nobody knows when another request ends. Retries and mirrored requests do not count again. Counts survive reloads. Each limit with a `key` has room of its own for about 40,000 values with requests in progress (the first 32 such limits in use; further ones: about 700). While it is full, requests with further values are counted together, and `tracegate_concurrency_limit_overflow_total` counts them.",
  );

export const schema = conditionally("ConcurrencyLimit", limits, limit);

export type ConcurrentLimit = ConfigOf<typeof limit>;
/** Applied in order. */
export type ConcurrencyLimit = readonly ConcurrentLimit[];
