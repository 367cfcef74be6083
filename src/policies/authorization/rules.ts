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
  /** Reads the values of the rule's paths; compiled for the first trace, since most rules never need it. */
  inputs: Inputs | undefined;
};

/**
 * A `deny` rule that fails to evaluate denies: it might have been true. The reference lets such requests pass, which would make
 * an error that the client can cause, such as a malformed claim, a way around the rule.
 */
const denies = (): boolean => true;
/** A `require` or `allow` rule that fails is not true: neither grants access. */
const grantsNothing = (): boolean => false;

/**
 * A set of rules that decides together (reference 3.3). Denied if a `deny` rule is true or fails, if a `require` rule is not true,
 * or if there are `allow` rules and none is true; else allowed. So an empty set allows everything.
 */
export class Rules {
  readonly #all: readonly Rule[];
  readonly #scope: Scope;
  readonly #cel: CelEnvironment;
  readonly #deny: readonly Condition[];
  readonly #require: readonly Condition[];
  readonly #allow: readonly Condition[];

  /** `scope`: what the rules may read, of a request or of a connection. Throws CelError for a rule that does not compile. */
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

  /** All rules, for finding out whether one of them reads the body. */
  get conditions(): readonly Condition[] {
    return this.#all.map(({ condition }) => condition);
  }

  /** The decision alone: the hot path, which stops at the first rule that decides. */
  allows(variables: Activation): boolean {
    for (const rule of this.#deny) if (rule.matches(variables, denies)) return false;
    for (const rule of this.#require) if (!rule.matches(variables, grantsNothing)) return false;
    if (this.#allow.length === 0) return true;
    for (const rule of this.#allow) if (rule.matches(variables, grantsNothing)) return true;
    return false;
  }

  /** The same decision with the result of every rule, including those that it does not depend on; for traces. */
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
