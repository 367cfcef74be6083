import { z } from "zod";
import { condition } from "./cel.ts";

/** Entries of one list. Conditions are evaluated one after the other for each request, so the list bounds that work. */
const MAX_ENTRIES = 64;

/**
 * Alternatives: the first one whose condition is true applies; only the last may lack one, as in
 * docs/policies/ext-authz.md#conditionalextauthz.
 */
export interface Conditional<Entry extends object> {
  readonly conditional: readonly (Entry & { readonly condition?: string | undefined })[];
}

/**
 * `plain`, or `conditional`: a list of alternatives, each an `entry` with a condition. That the entry without
 * condition is the last one is checked where the policy is created. `name` is the entry's in the docs, after `Conditional`.
 */
export function conditionally<Plain extends z.ZodType, Shape extends z.ZodRawShape>(
  name: string,
  plain: Plain,
  entry: z.ZodObject<Shape, z.core.$strict>,
) {
  const alternative = entry
    .extend({
      condition: condition("request", {
        true: "applies to all requests, and entries after it to none",
        false: "never applies",
      })
        .optional()
        .describe("CEL over the request: this entry applies if it is true. Optional in the last entry."),
    })
    .meta({ id: `Conditional${name}`, description: "One of several alternatives." });
  const list = z.strictObject({
    conditional: z
      .array(alternative)
      .min(1)
      .max(MAX_ENTRIES)
      .describe(
        "Alternatives: the first entry whose condition is true applies, if any. If a condition cannot be evaluated, the request is rejected with 400.",
      ),
  });
  return z.union([plain, list]).describe(plain.description ?? "");
}
