/**
 * What an expression read and computed in one evaluation, for traces, logs and explanations. An expression that is observed is compiled
 * once more, with a recorder around each of its parts, so that evaluations that nobody observes cost nothing.
 */
import { check } from "./check/checker.ts";
import type { Activation } from "./environment/activation.ts";
import type { Checked, Environment } from "./environment/environment.ts";
import { compilationOf } from "./evaluate/compile.ts";
import { costOf } from "./evaluate/cost.ts";
import type { Evaluator } from "./evaluate/evaluator.ts";
import { children, isReserved, type Node } from "./syntax/ast.ts";
import { LIMITS, parse } from "./syntax/parser.ts";
import { Budget, charge, endBudget, startBudget } from "./values/budget.ts";
import { jsonOf } from "./values/convert.ts";
import { Failure } from "./values/failure.ts";
import { CelMapLike, CelOptional, type CelValue } from "./values/types.ts";

/** The value of one path in an expression, such as `jwt.sub` or `request.headers["x-a"]`, in one evaluation. */
export interface InputValue {
  readonly text: string;
  /** The fields below the variable: `sub`; `headers`, `x-a`. */
  readonly path: readonly string[];
  /** JSON; null if absent. */
  readonly value: unknown;
}

/** The result of a part of an expression that is neither a path nor constant, such as `jwt.sub == "a"` in a longer condition. */
export interface PartValue {
  /** Offsets into the text of the expression, in UTF-16 units. */
  readonly from: number;
  readonly to: number;
  /** JSON, or why there is no value. */
  readonly result: { readonly value: unknown } | { readonly error: string };
  /** What it was computed from. */
  readonly reads: readonly InputValue[];
  /** It was computed from more than `reads`: from whole maps, a body, a secret. */
  readonly readsMore: boolean;
}

export interface Observation {
  /** All paths in the expression. Without whole maps of headers and bodies: they would be large, or secret. */
  readonly inputs: readonly InputValue[];
  /** The parts that the evaluation reached, in source order. Without those in loops, which have a value for each turn. */
  readonly parts: readonly PartValue[];
}

/** Maximum numbers of paths and parts that are shown for an expression. */
const MAX_INPUTS = 20;
const MAX_PARTS = 20;

/** A second compilation of an expression, whose parts are recorded. Evaluations are synchronous, so one record serves them all. */
export class ObservedExpression {
  /** Evaluates the expression as its first compilation does, for `observationOf`. */
  readonly evaluator: Evaluator;
  readonly #inputs: readonly { readonly text: string; readonly path: readonly string[]; readonly read: Evaluator }[];
  readonly #parts: readonly Part[];
  readonly #results = new Map<Node, CelValue | Failure>();
  #result: CelValue | Failure = null;

  /** `text` is a valid expression of the environment. */
  constructor(text: string, environment: Environment) {
    const root = parse(text, LIMITS);
    const checked = check(root, text, environment);
    const survey = new Survey(root, checked, environment);
    this.#parts = survey.parts.slice(0, MAX_PARTS);
    const recorded = new Set(this.#parts.map(({ node }) => node));
    const { compile } = compilationOf(checked, text, (node, run) =>
      recorded.has(node) ? this.#recorder(node, run) : run,
    );
    this.#inputs = [...survey.inputs].slice(0, MAX_INPUTS).map(([path, node]) => {
      const fields = survey.pathOf(node) ?? [];
      return {
        text: path,
        path: fields.slice(1),
        read: compile(node.kind === "select" ? { ...node, test: false } : node),
      };
    });
    const [run, cost] = [compile(root), costOf(root)];
    this.evaluator = (activation, slots) => {
      this.#results.clear();
      charge(cost);
      this.#result = run(activation, slots);
      return this.#result;
    };
  }

  /** What the last evaluation read and computed. The budget of the request does not pay for showing it. */
  observationOf(activation: Activation): Observation {
    const budget = new Budget();
    const inputs = new Map<string, InputValue>();
    for (const { text, path, read } of this.#inputs) {
      const result = shown(() => withoutAbsence(read(activation, [])), budget);
      if (result !== undefined && "value" in result) inputs.set(text, { text, path, value: result.value });
    }
    const parts = this.#parts.flatMap(({ node, reads }): PartValue[] => {
      const found = this.#results.get(node);
      const result = found === undefined || this.#isShown(node, found) ? undefined : shown(() => found, budget);
      if (result === undefined) return [];
      const known = [...reads.inputs].flatMap((text) => inputs.get(text) ?? []);
      const readsMore = reads.more || known.length < reads.inputs.size;
      return [{ from: node.from, to: node.to, result, reads: known, readsMore }];
    });
    return { inputs: [...inputs.values()], parts };
  }

  /** Whether the failure is that of a part of this part, or of the expression, which show it. */
  #isShown(node: Node, result: CelValue | Failure): boolean {
    if (!(result instanceof Failure)) return false;
    if (result === this.#result && !result.absent) return true;
    return this.#parts.some(
      ({ node: inner }) =>
        inner !== node && inner.from >= node.from && inner.to <= node.to && this.#results.get(inner) === result,
    );
  }

  #recorder(node: Node, run: Evaluator): Evaluator {
    return (activation, slots) => {
      const result = run(activation, slots);
      this.#results.set(node, result);
      return result;
    };
  }
}

function withoutAbsence(value: CelValue | Failure): CelValue | Failure {
  return value instanceof Failure && value.absent ? null : value;
}

/** A value as JSON; undefined for whole maps of headers, bodies and what is too large. */
function shown(read: () => CelValue | Failure, budget: Budget): PartValue["result"] | undefined {
  startBudget(budget);
  try {
    const value = read();
    if (value instanceof Failure) return { error: value.what };
    const inner = value instanceof CelOptional ? value.value : value;
    return inner instanceof CelMapLike || inner instanceof Uint8Array ? undefined : { value: jsonOf(value) };
  } catch {
    return undefined;
  } finally {
    endBudget();
  }
}

/** What a part is computed from: paths by their texts, and whether there is more. */
interface Reads {
  readonly inputs: ReadonlySet<string>;
  readonly more: boolean;
}

interface Part {
  readonly node: Node;
  readonly reads: Reads;
}

const NOTHING: Reads = { inputs: new Set(), more: false };
const MORE: Reads = { inputs: new Set(), more: true };

/** Names of loops and bindings, with what their values are computed from. */
type Bound = ReadonlyMap<string, Reads>;

/** Finds the paths and the parts of an expression. */
class Survey {
  /** A node for each path, by its text, such as `request.headers["x-a"]`. */
  readonly inputs = new Map<string, Node>();
  readonly parts: Part[] = [];
  readonly #checked: Checked;
  readonly #variables: Environment["variables"];

  constructor(root: Node, checked: Checked, { variables }: Environment) {
    this.#checked = checked;
    this.#variables = variables;
    this.#visit(root, new Map(), root);
    this.parts.sort((a, b) => a.node.from - b.node.from || b.node.to - a.node.to);
  }

  /** `within`: the node of which this is a part; undefined in loops, whose parts are not recorded. */
  #visit(node: Node, bound: Bound, within: Node | undefined): Reads {
    const path = this.pathOf(node, bound);
    if (path !== undefined) {
      if (path.length === 1) return MORE;
      const text = textOf(path);
      if (!this.inputs.has(text)) this.inputs.set(text, node);
      return { inputs: new Set([text]), more: false };
    }
    if (node.kind === "identifier") return bound.get(node.name) ?? NOTHING;
    const reads = this.#readsOf(node, bound, within);
    if (within !== undefined && node !== within && isResult(node, within) && (reads.more || reads.inputs.size > 0))
      this.parts.push({ node, reads });
    return reads;
  }

  #readsOf(node: Node, bound: Bound, within: Node | undefined): Reads {
    const inner = within && node;
    switch (node.kind) {
      case "loop": {
        const range = this.#visit(node.range, bound, inner);
        const turn = new Map([...bound, ...node.variables.map((name) => [name, range] as const)]);
        const bodies = [node.filter, node.body].flatMap((each) =>
          each === undefined ? [] : this.#visit(each, turn, undefined),
        );
        return union([range, ...bodies]);
      }
      case "bind":
      case "optionalMap": {
        const value = this.#visit(node.kind === "bind" ? node.value : node.operand, bound, inner);
        return union([value, this.#visit(node.body, new Map([...bound, [node.name, value]]), inner)]);
      }
      default: {
        const own = node.kind === "call" && this.#readsItself(node.name, node) ? [MORE] : [];
        return union([...own, ...children(node).map((child) => this.#visit(child, bound, inner))]);
      }
    }
  }

  /** Whether a call reads more than its arguments. */
  #readsItself(name: string, node: Node & { kind: "call" }): boolean {
    const custom = this.#checked.customCalls.get(node)?.definition;
    return name === "unredacted" || this.#checked.references.has(node) || (custom?.reads.size ?? 0) > 0;
  }

  /** The variable and the fields below it; undefined for anything but a path. */
  pathOf(node: Node, bound: Bound = new Map()): string[] | undefined {
    if (node.kind === "identifier")
      return this.#variables.has(node.name) && (node.absolute || !bound.has(node.name)) ? [node.name] : undefined;
    if (node.kind === "select") {
      const path = this.pathOf(node.operand, bound);
      return path && [...path, node.field];
    }
    if (node.kind !== "call" || (node.name !== "_[_]" && node.name !== "_[?_]")) return undefined;
    const [operand, key] = node.args;
    if (operand === undefined || key?.kind !== "literal" || typeof key.value !== "string") return undefined;
    const path = this.pathOf(operand, bound);
    return path && [...path, key.value];
  }
}

/** Not the inner nodes of `a && b && c`, which the parser makes, nor lists and bindings, whose parts say the same. */
function isResult(node: Node, within: Node): boolean {
  if (node.kind === "call")
    return !(within.kind === "call" && within.name === node.name && (node.name === "_&&_" || node.name === "_||_"));
  return node.kind === "loop" || node.kind === "fallback" || node.kind === "select";
}

function union(all: readonly Reads[]): Reads {
  return { inputs: new Set(all.flatMap(({ inputs }) => [...inputs])), more: all.some(({ more }) => more) };
}

function textOf([variable = "", ...fields]: readonly string[]): string {
  const isName = (field: string): boolean => /^[A-Za-z_]\w*$/.test(field) && !isReserved(field);
  const steps = fields.map((field) => (isName(field) ? `.${field}` : `[${JSON.stringify(field)}]`));
  return variable + steps.join("");
}
