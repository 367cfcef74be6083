import { z } from "zod";
import { parseDuration } from "../../base/durations.ts";
import { expression } from "../schema/cel.ts";
import type { ConfigOf } from "../schema/resolved.ts";

export const schema = z
  .strictObject({
    duration: expression("request", (text) => parseDuration(text) !== undefined).describe(
      "A duration such as `2s`, or CEL over the request that returns a duration or milliseconds; no delay if it fails.",
    ),
  })
  .describe("Delays requests; the delay counts toward the request's timeout.");

/** The configuration at run time. */
export type Delay = ConfigOf<typeof schema>;
