/**
 * `authorization` (docs/policies/authorization.md): allows or denies requests by CEL rules. In: rules with a mode, combined over
 * all levels. Out: nothing, or 403; a trace gets `authorizationResult` with the result of every rule. Runs in all three phases,
 * after authentication; `frontendPolicies.networkAuthorization` decides about connections by the same `Rules`.
 */
import { GatewayError, type Why } from "../../base/errors.ts";
import type { Activation, CelEnvironment } from "../../cel/index.ts";
import type { PolicyContext, PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import { DENIALS, type Denial, Rules } from "./rules.ts";
import type { Authorization } from "./schema.ts";

export const authorization = definePolicy({
  decisions: DENIALS,
  kind: "authorization",
  phases: ["gateway", "route", "backend"],
  calls: "warn",
  prepare,
  redact: (config) => config,
  // As users write them, `{deny: …}`; internally a rule is `{mode, expression}`.
  traceView: ({ rules }) => ({ rules: rules.map(({ mode, expression }) => ({ [mode]: expression })) }),
  // Rules add up over the levels, so a route cannot undo a `deny` or `require` of its gateway.
  merge: (outer, inner) => ({ rules: [...outer.rules, ...inner.rules] }),
  repeatable: true,
});

/**
 * Without a trace, evaluation stops at the first rule that decides; with one, all rules are evaluated for their results. Waits for
 * the body only if a rule reads it. Throws CelError for a rule that does not compile.
 */
function prepare({ rules: configured }: Authorization, cel: CelEnvironment): () => PolicyHooks {
  const rules = new Rules(configured, "request", cel);
  const decide = ({ variables, trace }: PolicyContext): undefined => {
    let denial: Denial | undefined;
    if (trace === undefined) denial = rules.decide(variables);
    else {
      const explained = rules.explain(variables);
      denial = explained.denial;
      trace.authorization(explained.results, denial === undefined ? "allow" : "deny");
    }
    if (denial === undefined) return undefined;
    throw denied(rules, denial, variables);
  };
  return () => ({ onRequest: afterRequestBody(rules.conditions, decide) });
}

// Separate, because its closure would cost every request an allocation.
function denied(rules: Rules, denial: Denial, variables: Activation): GatewayError {
  const why: Why = (shown, after) => ({ text: rules.describe(denial, variables, shown, after) });
  return new GatewayError("TG_AUTHORIZATION", undefined, undefined, { why, rule: rules.deciding(denial) });
}
