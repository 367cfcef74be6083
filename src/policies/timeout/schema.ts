import { z } from "zod";
import { parseDuration } from "../../base/durations.ts";

const duration = z
  .string()
  .transform((text, context) => {
    const parsed = parseDuration(text);
    if (parsed === undefined)
      context.addIssue({
        code: "custom",
        message: `not a duration: ${text}; write a number with a unit, such as 10s or 500ms`,
      });
    return parsed ?? 0;
  })
  .meta({ examples: ["10s", "500ms"] });

export const schema = z
  .strictObject({
    requestTimeout: duration
      .optional()
      .describe("From the request to the response's head, over all attempts; else 504. Default: none."),
    backendRequestTimeout: duration.optional().describe("The same for each attempt. Default: none."),
  })
  .describe("Limits how long a backend may take.");
