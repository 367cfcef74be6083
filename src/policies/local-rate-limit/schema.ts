import { z } from "zod";
import { expression } from "../schema/cel.ts";
import { conditionally } from "../schema/conditional.ts";
import { duration } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

const tokens = z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(0);

const limit = z
  .strictObject({
    maxTokens: tokens.describe("Maximum burst: the tokens of a full bucket."),
    tokensPerFill: tokens.describe("Tokens that each refill adds; at most `maxTokens`."),
    fillInterval: duration.describe("Time between refills."),
    type: z
      .enum(["requests", "tokens"])
      .default("requests")
      .describe("What a token counts: `requests`. `tokens` of language models are not supported."),
    key: expression("request")
      .optional()
      .describe(
        "CEL; each value has its own bucket, such as `source.address` for a limit per client. Requests for which it fails share a bucket, and so do requests with new values while the limit's room for values is full: see above. Default: one bucket for all requests.",
      ),
  })
  .meta({ id: "LocalLimit", description: "A token bucket." });

const limits = z
  .array(limit)
  .min(1)
  .describe(
    "Limits requests, across all threads of the process. A limit counts the requests of all routes that it applies to together, wherever they are: written at a route, those of the route; as an entry of `policies` or a TracegatePolicy of a gateway, those of the gateway. For a count for each route, give it the key `proxy.route.name`. Each request takes a token from every limit in the list; if one has none left, the response is 429. Responses carry `x-ratelimit-limit`, `x-ratelimit-remaining` and `x-ratelimit-reset` (seconds until the next refill) of the limit with the fewest tokens left; a 429 carries those of the limit that was empty, and `retry-after` unless its bucket is never refilled. Counts survive reloads. Each limit with a `key` has room of its own for about 20,000 values that are being limited at once (the first 64 such limits in use; further ones: about 150). While it is full, requests with further values are counted together, and `tracegate_local_rate_limit_overflow_total` counts them.",
  );

export const schema = conditionally("LocalLimit", limits, limit);

export type LocalLimit = ConfigOf<typeof limit>;
/** Applied in order. */
export type LocalRateLimit = readonly LocalLimit[];
