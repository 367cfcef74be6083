import { z } from "zod";
import { condition } from "../schema/cel.ts";
import type { ConfigOf } from "../schema/resolved.ts";

/** A rule is CEL over the request; without a mode it is an `allow` rule, as in the reference (3.3). */
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
        "CEL over the request. A request is denied if a `deny` rule is true, if a `require` rule is not true, or if there are `allow` rules (a plain string is one) and none is true. A rule that reads an absent value is not true. If a rule cannot be evaluated, a `deny` rule denies, and a `require` or `allow` rule is not true.",
      ),
  })
  .describe("Allows or denies requests by CEL rules; denied requests get 403. Rules from all levels are combined.");

export type Authorization = ConfigOf<typeof schema>;
export type AuthorizationRule = Authorization["rules"][number];
