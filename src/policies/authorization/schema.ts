import { z } from "zod";
import { condition } from "../shared/cel-schema.ts";

const rule = condition("request");

export const schema = z
  .strictObject({
    rules: z
      .array(
        z.union([
          rule.transform((expression) => ({ mode: "allow" as const, expression })),
          z.strictObject({ allow: rule }).transform(({ allow }) => ({ mode: "allow" as const, expression: allow })),
          z.strictObject({ deny: rule }).transform(({ deny }) => ({ mode: "deny" as const, expression: deny })),
          z
            .strictObject({ require: rule })
            .transform(({ require }) => ({ mode: "require" as const, expression: require })),
        ]),
      )
      .describe(
        "CEL over the request. Denied is what a `deny` rule is true for, what a `require` rule is not true for, and, where there are `allow` rules (a text alone is one), what none of them is true for. A rule that fails is not true.",
      ),
  })
  .describe("Decides by rules who may do what; else 403. Rules of all levels add up.");
