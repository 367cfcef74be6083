import type { ShownValues } from "../../base/errors.ts";
import type { Activation, CelEnvironment, Condition, Scope } from "../../cel/index.ts";
import { ruleText, type ShownRule } from "../../trace/authorization.ts";
import { Decisions, rejected } from "../contract/decisions.ts";
import type { AuthorizationRuleResult } from "../contract/types.ts";
import type { AuthorizationRule } from "./schema.ts";

type Mode = AuthorizationRule["mode"];

type Rule = AuthorizationRule & { readonly condition: Condition };

/**
 * A `deny` rule that fails to evaluate denies: it might have been true. The reference lets such requests pass, which would make
 * an error that the client can cause, such as a malformed claim, a way around the rule.
 */
const DENIES = (): boolean => true;
/** A `require` or `allow` rule that fails is not true: neither grants access. */
const GRANTS_NOTHING = (): boolean => false;

/** Values of a rule that a denial shows. */
const MAX_VALUES = 5;

type DenialDecision =
  | { readonly code: "noAllow" }
  | { readonly code: "rule"; readonly result: ShownRule; readonly index: number; readonly after?: "deny" | undefined };

/** What the access log says; traces have the result of every rule. */
export const DENIALS = new Decisions<DenialDecision>("authorization", {
  noAllow: () => rejected("no allow rule is true"),
  rule: ({ result, index, after }) => rejected(ruleText(result, index, after)),
});

/** Why a set of rules denies. */
export type Denial =
  /** The rule that decided: a `deny` rule that is true or fails, a `require` rule that is not true. */
  | { readonly mode: "deny" | "require"; readonly rule: Rule }
  /** There are `allow` rules, and none is true. */
  | { readonly mode: "allow" };

/**
 * A set of rules that decides together (docs/policies/authorization.md). Denied if a `deny` rule is true or fails, if a `require`
 * rule is not true, or if there are `allow` rules and none is true; else allowed. So an empty set allows everything.
 */
export class Rules {
  readonly #all: readonly Rule[];
  readonly #deny: readonly Rule[];
  readonly #require: readonly Rule[];
  readonly #allow: readonly Rule[];

  /** `scope`: what the rules may read, of a request or of a connection. Throws CelError for a rule that does not compile. */
  constructor(rules: readonly AuthorizationRule[], scope: Scope, cel: CelEnvironment) {
    this.#all = rules.map((rule) => ({ ...rule, condition: cel.compileCondition(rule.expression, scope) }));
    const of = (mode: Mode): Rule[] => this.#all.filter((rule) => rule.mode === mode);
    this.#deny = of("deny");
    this.#require = of("require");
    this.#allow = of("allow");
  }

  /** All rules, for finding out whether one of them reads the body. */
  get conditions(): readonly Condition[] {
    return this.#all.map(({ condition }) => condition);
  }

  /** The same decision with the result of every rule, including those that it does not depend on; for traces. */
  explain(variables: Activation): {
    readonly denial: Denial | undefined;
    readonly results: readonly AuthorizationRuleResult[];
  } {
    const results = new Map(this.#all.map((rule) => [rule, resultOf(rule, variables)]));
    return { denial: this.decide(variables, results), results: [...results.values()] };
  }

  /** Undefined: allowed. Stops at the first rule that decides. `known`: results of all rules, which are not evaluated again. */
  decide(variables: Activation, known?: Results): Denial | undefined {
    for (const rule of this.#deny) if (isTrue(rule, variables, DENIES, known)) return { mode: "deny", rule };
    for (const rule of this.#require)
      if (!isTrue(rule, variables, GRANTS_NOTHING, known)) return { mode: "require", rule };
    if (this.#allow.length === 0) return undefined;
    for (const rule of this.#allow) if (isTrue(rule, variables, GRANTS_NOTHING, known)) return undefined;
    return { mode: "allow" };
  }

  /** A denial by its values; expressions are left out, because they may contain secrets. `after`: see `Why`. */
  describe(denial: Denial, variables: Activation, shown: ShownValues, after?: "deny"): string {
    if (denial.mode === "allow") return DENIALS.tell({ code: "noAllow" }).text;
    const { mode, matched, error, inputs } = resultOf(denial.rule, variables);
    const values = inputs
      .slice(0, MAX_VALUES)
      .map(({ text, path, value }) => [text, shown.input(path, value)] as const);
    const result = { mode, matched, ...(error !== undefined && { error: "" }), inputs: Object.fromEntries(values) };
    return DENIALS.tell({ code: "rule", result, index: this.deciding(denial), after }).text;
  }

  /** The position of the rule that denies; the first `allow` rule, if none of them is true. */
  deciding(denial: Denial): number {
    return denial.mode === "allow"
      ? this.#all.findIndex(({ mode }) => mode === "allow")
      : this.#all.indexOf(denial.rule);
  }
}

function resultOf({ expression: name, mode, condition }: Rule, variables: Activation): AuthorizationRuleResult {
  const { met: matched, error, ...observed } = condition.observe(variables);
  return { name, mode, matched, ...observed, ...(error !== undefined && { error: error.what }) };
}

/** What a failed rule counts as. */
type IfFailed = () => boolean;
type Results = ReadonlyMap<Rule, AuthorizationRuleResult>;

function isTrue(rule: Rule, variables: Activation, ifFailed: IfFailed, known: Results | undefined): boolean {
  if (known === undefined) return rule.condition.matches(variables, ifFailed);
  const result = known.get(rule);
  return result?.error === undefined ? result?.matched === true : ifFailed();
}
