import { GatewayError } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { definePolicy } from "../policy.ts";
import { afterWholeBody } from "../shared/expressions.ts";
import type { PolicyContext, PolicyHooks } from "../types.ts";
import { Rules } from "./rules.ts";
import type { Authorization } from "./schema.ts";

export const authorization = definePolicy({
  kind: "authorization",
  phases: ["gateway", "route", "backend"],
  traceStage: "authorization",
  calls: "warn",
  prepare,
  redact: (config) => config,
  // Rules by their mode, as the configuration has them.
  traceView: ({ rules }) => ({ rules: rules.map(({ mode, expression }) => ({ [mode]: expression })) }),
  // No level can undo the rules of another.
  merge: (outer, inner) => ({ rules: [...outer.rules, ...inner.rules] }),
  repeatable: true,
});

/** Answers 403 to requests that the rules do not let in. Throws CelError for a rule that cannot be used. */
function prepare({ rules: configured }: Authorization, cel: CelEnvironment): () => PolicyHooks {
  const rules = new Rules(configured, "request", cel);
  const decide = ({ variables, trace }: PolicyContext): undefined => {
    if (trace === undefined) {
      if (rules.allows(variables)) return undefined;
    } else {
      const { allowed, results } = rules.explain(variables);
      trace.authorization(results, allowed ? "allow" : "deny");
      if (allowed) return undefined;
    }
    throw new GatewayError("TG_AUTHORIZATION");
  };
  return () => ({ onRequest: afterWholeBody(rules.conditions, decide) });
}
