import { z } from "zod";
import { ruleConditions } from "../schema/cel.ts";
import type { ConfigOf } from "../schema/resolved.ts";

/** A rule is CEL over the request; without a mode it is an `allow` rule, as in the reference (3.3). */
const { allow, deny, require } = ruleConditions("request", "requests");

export const schema = z
  .strictObject({
    rules: z
      .array(
        z.union([
          allow.transform((expression) => ({ mode: "allow" as const, expression })),
          z.strictObject({ allow }).transform((each) => ({ mode: "allow" as const, expression: each.allow })),
          z.strictObject({ deny }).transform((each) => ({ mode: "deny" as const, expression: each.deny })),
          z.strictObject({ require }).transform((each) => ({ mode: "require" as const, expression: each.require })),
        ]),
      )
      .describe(
        "CEL over the request. A request is denied if a `deny` rule is true, if a `require` rule is not true, or if there are `allow` rules (a plain string is one) and none is true. A rule that reads an absent value is not true. If a rule cannot be evaluated, a `deny` rule denies, and a `require` or `allow` rule is not true.",
      ),
  })
  .describe("Allows or denies requests by CEL rules; denied requests get 403. Rules from all levels are combined.");

export type Authorization = ConfigOf<typeof schema>;
export type AuthorizationRule = Authorization["rules"][number];
