import { z } from "zod";
import { ms, parseDuration } from "../../base/durations.ts";

/** A Go-style duration; milliseconds after parsing. */
export const duration = z
  .string({ error: "a duration with a unit, such as 10s" })
  .transform((text, context) => {
    const parsed = parseDuration(text);
    if (parsed === undefined)
      context.addIssue({
        code: "custom",
        message: `not a duration: ${text}; write a number with a unit, such as 10s, 500ms or 1h30m`,
      });
    return parsed ?? ms(0);
  })
  .meta({ title: "duration", description: "Duration such as `10s`, `500ms` or `1h30m`." });
