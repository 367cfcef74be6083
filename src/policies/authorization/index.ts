import { GatewayError } from "../../base/errors.ts";
import type { PolicyDeps } from "../deps.ts";
import type { Authorization } from "../policy-set.ts";
import { afterWholeBody } from "../shared/bodies.ts";
import type { CompiledPolicy, PolicyContext } from "../types.ts";
import { Rules } from "./rules.ts";

/** Answers 403 to requests that the rules do not let in. Throws CelError for a rule that cannot be used. */
export function create({ rules: configured }: Authorization, { cel }: PolicyDeps): CompiledPolicy {
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
  return {
    kind: "authorization",
    onRequest: afterWholeBody(rules.conditions, decide),
  };
}
