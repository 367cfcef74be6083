import {
  type Activation,
  type CelEnvironment,
  type CelError,
  type Condition,
  Inputs,
  type Scope,
} from "../../cel/index.ts";
import type { AuthorizationRuleResult } from "../types.ts";
import type { AuthorizationRule } from "./schema.ts";

type Mode = AuthorizationRule["mode"];

type Rule = AuthorizationRule & {
  readonly condition: Condition;
  /** Made for the first trace. */
  inputs: Inputs | undefined;
};

/** A failed `deny` rule denies: it might have been true. */
const denies = (): boolean => true;
/** A failed `require` or `allow` rule is not true. */
const grantsNothing = (): boolean => false;

/**
 * Rules that decide together who may come in (reference 3.3): nobody for whom a `deny` rule is true or fails, nobody for whom
 * a `require` rule is not true, and, where there are `allow` rules, nobody for whom none of them is true.
 */
export class Rules {
  readonly #all: readonly Rule[];
  readonly #scope: Scope;
  readonly #cel: CelEnvironment;
  readonly #deny: readonly Condition[];
  readonly #require: readonly Condition[];
  readonly #allow: readonly Condition[];

  /** `scope`: what the rules may read. Throws CelError for a rule that cannot be used. */
  constructor(rules: readonly AuthorizationRule[], scope: Scope, cel: CelEnvironment) {
    this.#all = rules.map((rule) => ({
      ...rule,
      condition: cel.compileCondition(rule.expression, scope),
      inputs: undefined,
    }));
    this.#scope = scope;
    this.#cel = cel;
    const of = (mode: Mode): Condition[] =>
      this.#all.filter((rule) => rule.mode === mode).map(({ condition }) => condition);
    this.#deny = of("deny");
    this.#require = of("require");
    this.#allow = of("allow");
  }

  get conditions(): readonly Condition[] {
    return this.#all.map(({ condition }) => condition);
  }

  allows(variables: Activation): boolean {
    for (const rule of this.#deny) if (rule.matches(variables, denies)) return false;
    for (const rule of this.#require) if (!rule.matches(variables, grantsNothing)) return false;
    if (this.#allow.length === 0) return true;
    for (const rule of this.#allow) if (rule.matches(variables, grantsNothing)) return true;
    return false;
  }

  /** Decides as `allows` does, with the outcome of every rule, also of those that the decision does not need. */
  explain(variables: Activation): { readonly allowed: boolean; readonly results: readonly AuthorizationRuleResult[] } {
    const results = this.#all.map((rule) => resultOf(rule, this.#scope, this.#cel, variables));
    const of = (mode: Mode): AuthorizationRuleResult[] => results.filter((result) => result.mode === mode);
    const allow = of("allow");
    const allowed =
      !of("deny").some(({ matched, error }) => matched || error !== undefined) &&
      of("require").every(({ matched }) => matched) &&
      (allow.length === 0 || allow.some(({ matched }) => matched));
    return { allowed, results };
  }
}

function resultOf(rule: Rule, scope: Scope, cel: CelEnvironment, variables: Activation): AuthorizationRuleResult {
  const { expression, mode, condition } = rule;
  let error: CelError | undefined;
  const matched = condition.matches(variables, (failed) => {
    error = failed;
    return false;
  });
  rule.inputs ??= new Inputs(expression, scope, cel);
  const inputs = rule.inputs.of(variables);
  return {
    name: expression,
    matched,
    mode,
    ...(error !== undefined && { error: error.what }),
    ...(inputs.length > 0 && { inputs }),
  };
}
