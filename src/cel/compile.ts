/**
 * CEL (Common Expression Language, cel-spec), as policies, filters and logs use it. In: the text of an expression and its scope,
 * which says what it may read. Out: an `Expression` that is evaluated for each request. A text is parsed (`syntax/`), names and
 * types are checked (`check/`), and the tree becomes closures (`evaluate/`) over `functions/` and `variables/`, so that
 * everything that can be checked or prepared is done when a configuration loads. `custom/` has the functions that a configuration defines.
 * Evaluation has a budget for each request (`evaluate/budget.ts`), because clients choose the data that expressions work on.
 */
import { messageOf } from "../base/errors.ts";
import { type AbsenceTrap, absenceTraps } from "./check/absence.ts";
import { check } from "./check/checker.ts";
import { constantOf } from "./check/constant.ts";
import { compileFunctions } from "./custom/compile-functions.ts";
import type { Activation } from "./environment/activation.ts";
import { type CustomFunctions, NO_FUNCTIONS } from "./environment/custom-function.ts";
import type { Checked, Environment } from "./environment/environment.ts";
import type { Observation } from "./environment/observer.ts";
import { formatType } from "./environment/types.ts";
import { compileNode } from "./evaluate/compile.ts";
import type { Evaluator, Slots } from "./evaluate/evaluator.ts";
import { FUNCTIONS } from "./functions/functions.ts";
import { ObservedExpression } from "./observation.ts";
import type { Node } from "./syntax/ast.ts";
import { CelError } from "./syntax/cel-error.ts";
import { LIMITS, parse } from "./syntax/parser.ts";
import { kindOf } from "./values/access.ts";
import { endBudget, startBudget } from "./values/budget.ts";
import { Failure, fail } from "./values/failure.ts";
import type { CelValue } from "./values/types.ts";
import { readsOf } from "./variables/reads.ts";
import type { Scope } from "./variables/scopes.ts";
import { VARIABLES } from "./variables/variables.ts";

const MAX_LENGTH = 4096;

/** An expression compiled once; holds no state of an evaluation. */
export interface Expression {
  readonly text: string;
  /** The CEL type of its value, as far as it is known without a request: `bool`, `string`, …, or `dyn`. */
  readonly type: string;
  /** Variables that it may read, the bodies, and the method where it is named: `request`, `request.body`, `request.method`, … */
  readonly reads: ReadonlySet<string>;
  /** Its value is that of `flatten` or `flattenRecursive`: a map whose entries telemetry records as fields of their own. */
  readonly flattens: boolean;
  /** Throws CelError, for example when a header is missing. */
  evaluate(activation: Activation): CelValue;
}

/** Whether a condition is met, and why. */
interface ObservedCondition extends Observation {
  readonly met: boolean;
  /** Why it is neither met nor unmet. */
  readonly error?: CelError;
}

/** An expression in one evaluation, for those who write it. */
interface Examination extends Observation {
  /** Of its value, as far as it is known before the evaluation. */
  readonly type: string;
  /** Why it has no value. */
  readonly error?: CelError;
}

/** Whether an expression reads the body of this message, or the beginning of it. */
export function readsBody({ reads }: Pick<Expression, "reads">, message: "request" | "response"): boolean {
  return reads.has(`${message}.body`) || reads.has(`${message}.bodyPrefix`);
}

/** An expression with a boolean result, for decisions. */
export interface Condition extends Expression {
  /**
   * Whether the condition is met. It is not met if a value that it reads is absent, such as a missing header or an unset
   * variable. If the evaluation fails for any other reason, such as undecodable text, a type mismatch or an exhausted budget, the
   * condition is neither met nor unmet, and `whenFailed` decides: a deny rule must not be bypassed by making it fail.
   */
  matches(activation: Activation, whenFailed: WhenFailed): boolean;
  /** Like matches, with what was read and computed. Slow at first, and several times slower than matches after that. */
  observe(activation: Activation): ObservedCondition;
}

/** The result of a condition that failed. May throw to reject the request. */
export type WhenFailed = (error: CelError) => boolean;

/**
 * The names that the expressions of one configuration may use: CEL itself, the gateway's variables and functions, and the functions that
 * the configuration defines. Passed to everything that compiles an expression, so configurations cannot see each other's functions.
 */
export class CelEnvironment {
  readonly #functions: CustomFunctions;
  readonly #environments = new Map<Scope, Environment>();

  /** `functions`: those that the configuration defines. */
  constructor(functions: CustomFunctions) {
    this.#functions = functions;
  }

  /** From the text of `config.customFunctions`. Throws CelError for the first mistake in it. */
  static defining(text: string): CelEnvironment {
    return text === "" ? STANDARD_ENVIRONMENT : new CelEnvironment(compileFunctions(text));
  }

  /**
   * Compiles a CEL expression of at most 4096 characters. Throws CelError for syntax, unknown names, types that do not fit,
   * constant patterns that are not RE2, and expressions that could run for long.
   */
  compileExpression(text: string, scope: Scope = "arrival"): Expression {
    return compileIn(this.#in(scope), text);
  }

  /** Like compileExpression, for expressions that decide: one that can never be true or false is a CelError. */
  compileCondition(text: string, scope: Scope = "arrival"): Condition {
    const expression = compileIn(this.#in(scope), text);
    if (expression.type !== "bool" && expression.type !== "dyn")
      throw new CelError(
        `the condition gives a value of type ${expression.type} where true or false is needed`,
        text,
        0,
      );
    return expression;
  }

  /** Compiles an expression, and evaluates it with the value of each of its parts. Throws CelError as compileExpression. */
  examine(text: string, scope: Scope, activation: Activation): Examination {
    const environment = this.#in(scope);
    const { type } = compileIn(environment, text);
    const observed = new ObservedExpression(text, environment, true);
    const value = evaluated(activation, observed.evaluator, []);
    const error = value instanceof Failure && { error: new CelError(value.what, text, value.at) };
    return { type, ...error, ...observed.observationOf(activation) };
  }

  /** Parts of a `deny` rule that let requests pass if a value is absent, to warn about. Throws CelError as compileCondition. */
  absenceTraps(text: string, scope: Scope): readonly AbsenceTrap[] {
    const node = parse(text, LIMITS);
    return absenceTraps(node, check(node, text, this.#in(scope)));
  }

  /**
   * The result that a condition has whatever it reads; undefined: it depends on that, or is just `true` or `false`, which is written on
   * purpose. Throws CelError as compileCondition.
   */
  constantOf(text: string, scope: Scope): boolean | undefined {
    const node = parse(text, LIMITS);
    if (node.kind === "literal") return undefined;
    const checked = check(node, text, this.#in(scope));
    return constantOf(node, text, checked, (part) => {
      startBudget();
      try {
        return compileNode(part, checked, text)({}, NO_SLOTS);
      } catch {
        // It fails, so it has no result.
        return undefined;
      } finally {
        endBudget();
      }
    });
  }

  #in(scope: Scope): Environment {
    let environment = this.#environments.get(scope);
    if (environment === undefined) {
      const custom = this.#functions;
      environment = { variables: VARIABLES[scope], functions: FUNCTIONS, custom, container: "", lenient: false };
      this.#environments.set(scope, environment);
    }
    return environment;
  }
}

/** The environment of a configuration without its own functions. */
export const STANDARD_ENVIRONMENT = new CelEnvironment(NO_FUNCTIONS);

/** Compiles an expression over any variables and functions, such as those of the conformance tests. */
export function compileIn(environment: Environment, text: string): Condition {
  if (text.length > MAX_LENGTH)
    throw new CelError(`the expression has ${text.length} characters, at most ${MAX_LENGTH} are allowed`, text);
  const node = parse(text, LIMITS);
  const checked = check(node, text, environment);
  return new CompiledExpression(text, node, checked, environment);
}

const NO_SLOTS: Slots = [];
const FLATTENING: ReadonlySet<string> = new Set(["flatten", "flattenRecursive"]);

class CompiledExpression implements Condition {
  readonly text: string;
  readonly type: string;
  readonly reads: ReadonlySet<string>;
  readonly flattens: boolean;
  readonly #run: Evaluator;
  readonly #hasSlots: boolean;
  readonly #environment: Environment;
  /** Made when it is needed: most expressions are never observed. */
  #observed: ObservedExpression | undefined;

  constructor(text: string, node: Node, checked: Checked, environment: Environment) {
    this.text = text;
    this.type = formatType(checked.type);
    this.reads = readsOf(node, checked, [...environment.variables.keys()]);
    this.flattens = node.kind === "call" && node.target === undefined && FLATTENING.has(node.name);
    this.#run = compileNode(node, checked, text);
    this.#hasSlots = checked.slotCount > 0;
    this.#environment = environment;
  }

  evaluate(activation: Activation): CelValue {
    const value = this.#valueOf(activation, false);
    if (value instanceof Failure) throw this.#errorOf(value);
    return value;
  }

  matches(activation: Activation, whenFailed: WhenFailed): boolean {
    return this.#decide(this.#valueOf(activation, true), activation, whenFailed);
  }

  observe(activation: Activation): ObservedCondition {
    const { value, observed } = this.#observe(activation);
    let error: CelError | undefined;
    const met = this.#decide(value, activation, (failed) => {
      error = failed;
      return false;
    });
    return { met, ...(error !== undefined && { error }), ...observed.observationOf(activation) };
  }

  #decide(value: CelValue | Failure, { unknowns }: Activation, whenFailed: WhenFailed): boolean {
    if (typeof value === "boolean") return value;
    if (value === null) return false;
    if (!(value instanceof Failure))
      return whenFailed(this.#errorOf(fail(`true or false is needed, not ${kindOf(value)}`)));
    if (value.needs !== undefined && unknowns !== undefined) return unknowns.decide(this.text, value.needs);
    return value.absent ? false : whenFailed(this.#errorOf(value));
  }

  /** Conditions only decide: their texts are shown. */
  #valueOf(activation: Activation, decides: boolean): CelValue | Failure {
    const { observer, unknowns } = activation;
    const isPlain = observer === undefined && (unknowns === undefined || !this.#observation().asks(unknowns));
    if (isPlain) return this.#evaluate(activation, this.#run);
    const { value, observed } = this.#observe(activation);
    if (decides || !observed.yieldsLiterals) observer?.evaluated(this.text, observed.observationOf(activation));
    if (decides || !(value instanceof Failure) || value.needs === undefined || unknowns === undefined) return value;
    return unknowns.standIn(value.needs, () => this.#evaluate(activation, observed.evaluator));
  }

  #observe(activation: Activation): { readonly value: CelValue | Failure; readonly observed: ObservedExpression } {
    const observed = this.#observation();
    return { value: this.#evaluate(activation, observed.evaluator), observed };
  }

  #observation(): ObservedExpression {
    this.#observed ??= new ObservedExpression(this.text, this.#environment);
    return this.#observed;
  }

  #evaluate(activation: Activation, run: Evaluator): CelValue | Failure {
    return evaluated(activation, run, this.#hasSlots ? [] : NO_SLOTS);
  }

  #errorOf({ what, at, absent }: Failure): CelError {
    return new CelError(what, this.text, at, undefined, absent);
  }
}

function evaluated(activation: Activation, run: Evaluator, slots: Slots): CelValue | Failure {
  startBudget(activation.budget);
  try {
    return run(activation, slots);
  } catch (error) {
    return fail(messageOf(error));
  } finally {
    endBudget();
  }
}
