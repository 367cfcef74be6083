import { z } from "zod";
import { parseDuration } from "../../base/durations.ts";
import type { ConfigOf } from "../resolve.ts";
import { expression } from "../shared/cel-schema.ts";

export const schema = z
  .strictObject({
    duration: expression("request", (text) => parseDuration(text) !== undefined).describe(
      "Such as `2s`, or CEL over the request that gives a duration or a number of milliseconds; none when it fails.",
    ),
  })
  .describe("Makes requests wait; the wait counts toward the request's deadline.");

/** What runs. */
export type Delay = ConfigOf<typeof schema>;
