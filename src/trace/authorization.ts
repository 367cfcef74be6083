/** The words for what authorization rules decide: the same in the access log, the tree of steps and the terminal view. */
import type { RuleResult } from "./events.ts";

/** A rule as it is shown. The access log omits the expression, because it may contain a secret. */
export type ShownRule = Partial<RuleResult> & Pick<RuleResult, "mode" | "matched">;

/** The position of the rule that decides, in the order deny, require, allow; -1 = none, so there is no `allow` rule that is true. */
function decidingRule(rules: readonly ShownRule[], result: "allow" | "deny"): number {
  if (result === "allow") return rules.findIndex(({ mode, matched }) => mode === "allow" && matched);
  const deny = rules.findIndex(({ mode, matched, error }) => mode === "deny" && (matched || error !== undefined));
  return deny >= 0 ? deny : rules.findIndex(({ mode, matched }) => mode === "require" && !matched);
}

/** `deny rules[1] is true: request.path == "/admin" (request.path: "/admin")`. `after`: the verdict that stands before the text; a rule of this mode does not repeat it. */
export function ruleText(
  { mode, matched, error, name, inputs = {} }: ShownRule,
  index: number,
  after?: RuleResult["mode"],
): string {
  const what = error !== undefined ? "cannot be evaluated" : matched ? "is true" : "is not true";
  const values = Object.entries(inputs).map(([path, value]) => `${path}: ${JSON.stringify(value)}`);
  return [
    `${mode === after ? "" : `${mode} `}rules[${index}] ${what}`,
    name === undefined ? "" : `: ${name}`,
    error === undefined || error === "" ? "" : `, ${error}`,
    values.length === 0 ? "" : ` (${values.join(", ")})`,
  ].join("");
}

/** What the rules decide together, by the rule that decides. */
export function authorizationText(rules: readonly ShownRule[], result: "allow" | "deny"): string {
  const index = decidingRule(rules, result);
  const rule = rules[index];
  if (rule !== undefined) return ruleText(rule, index);
  if (result === "allow") return "no rule denies";
  const failed = rules.findIndex(({ mode, error }) => mode === "allow" && error !== undefined);
  const [first] = rules.slice(failed);
  return failed < 0 || first === undefined ? "no allow rule is true" : ruleText(first, failed);
}
