import { z } from "zod";
import { duration } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

export const schema = z
  .strictObject({
    requestTimeout: duration
      .optional()
      .describe("Time from the request to the response's head, over all attempts, then 504. Default: none."),
    backendRequestTimeout: duration.optional().describe("The same, for each attempt. Default: none."),
  })
  .describe("Limits how long a request and each attempt may take.");

/** The configuration at run time, in milliseconds. */
export type Timeout = ConfigOf<typeof schema>;
