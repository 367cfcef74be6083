import { z } from "zod";
import { conditionally } from "../conditional/schema.ts";
import type { ConfigOf } from "../resolve.ts";
import { expression } from "../shared/cel-schema.ts";
import { duration } from "../shared/field-schemas.ts";

const tokens = z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(0);

const limit = z
  .strictObject({
    maxTokens: tokens.describe("Requests that may come at once: tokens of a full bucket."),
    tokensPerFill: tokens.describe("Tokens that each interval adds; not more than `maxTokens`."),
    fillInterval: duration.describe("Time between fills."),
    type: z
      .enum(["requests", "tokens"])
      .default("requests")
      .describe("What a token stands for: `requests`. `tokens`, those of language models, are not counted here."),
    key: expression("request")
      .optional()
      .describe(
        "CEL whose value has a bucket of its own, such as `source.address`: a limit for each client. Requests for which it fails share one. Default: one bucket for all.",
      ),
  })
  .meta({ id: "LocalLimit", description: "One limit." });

const limits = z
  .array(limit)
  .min(1)
  .describe(
    "Limits how many requests a route takes, over all threads of the process. Each limit of the list takes a token; when one has none left the answer is 429. Counts survive reloads.",
  );

export const schema = conditionally("LocalLimit", limits, limit);

export type LocalLimit = ConfigOf<typeof limit>;
/** All limits are checked, in order. */
export type LocalRateLimit = readonly LocalLimit[];
