import { GatewayError } from "../../base/errors.ts";
import { type Activation, compileCondition, type Expression } from "../../cel/index.ts";
import type { Authorization, AuthorizationRule } from "../../ir/policies.ts";
import { afterWholeBody } from "../shared/bodies.ts";
import type { CompiledPolicy, PolicyContext } from "../types.ts";

const KIND = "authorization";

interface Rule extends AuthorizationRule {
  readonly condition: Expression;
}

/**
 * Denies what a `deny` rule is true for, what a `require` rule is not true for, and what no `allow` rule is true for where
 * there are such (reference 3.3). A rule that fails is not true. Throws CelError for a rule that cannot be used.
 */
export function create({ rules }: Authorization): CompiledPolicy {
  const compiled = rules.map((rule): Rule => ({ ...rule, condition: compileCondition(rule.expression, "request") }));
  const of = (mode: AuthorizationRule["mode"]): readonly Expression[] =>
    compiled.filter((rule) => rule.mode === mode).map((rule) => rule.condition);
  const [deny, require, allow] = [of("deny"), of("require"), of("allow")];
  const allows = (variables: Activation): boolean => {
    for (const condition of deny) if (condition.matches(variables)) return false;
    for (const condition of require) if (!condition.matches(variables)) return false;
    if (allow.length === 0) return true;
    for (const condition of allow) if (condition.matches(variables)) return true;
    return false;
  };
  const decide = (context: PolicyContext): undefined => {
    const allowed = allows(context.variables);
    if (context.trace !== undefined) tell(context, compiled, allowed);
    if (!allowed) throw new GatewayError("TG_AUTHORIZATION");
  };
  return {
    kind: KIND,
    shown: { rules: rules.map(({ mode, expression }) => ({ [mode]: expression })) },
    onRequest: afterWholeBody(
      compiled.map((rule) => rule.condition),
      decide,
    ),
  };
}

/** Every rule is shown with its outcome, also those that were not needed for the decision. */
function tell({ trace, variables }: PolicyContext, rules: readonly Rule[], allowed: boolean): void {
  const results = rules.map(({ expression, mode, condition }) => ({
    name: expression,
    matched: condition.matches(variables),
    mode,
  }));
  trace?.authorization(results, allowed ? "allow" : "deny");
}
