import { z } from "zod";
import type { ConfigOf } from "../resolve.ts";
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
        "CEL over the request. A request is denied when a `deny` rule is true, when a `require` rule is not true, or when there are `allow` rules (a text alone is one) and none of them is true. A rule over what the request lacks is not true. A rule that cannot be evaluated denies as `deny`, and is not true as `require` or `allow`.",
      ),
  })
  .describe("Decides by rules who may do what; else 403. Rules of all levels add up.");

export type Authorization = ConfigOf<typeof schema>;
export type AuthorizationRule = Authorization["rules"][number];
