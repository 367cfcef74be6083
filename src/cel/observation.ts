/**
 * What an expression read and computed in one evaluation, for traces, logs and explanations. Observing compiles the expression a second
 * time, with a recorder around each part, so the first compilation pays nothing for it.
 */
import { check } from "./check/checker.ts";
import type { Activation } from "./environment/activation.ts";
import type { Checked, Environment } from "./environment/environment.ts";
import type { InputValue, Observation, PartValue, Turn, Unknowns } from "./environment/observer.ts";
import { compilationOf } from "./evaluate/compile.ts";
import { costOf } from "./evaluate/cost.ts";
import type { Evaluator } from "./evaluate/evaluator.ts";
import { type Call, children, isReserved, type Loop, type Node } from "./syntax/ast.ts";
import { LIMITS, parse } from "./syntax/parser.ts";
import { kindOf } from "./values/access.ts";
import { Budget, charge, endBudget, startBudget } from "./values/budget.ts";
import { jsonOf } from "./values/convert.ts";
import { Failure } from "./values/failure.ts";
import { CelMapLike, CelOptional, type CelValue } from "./values/types.ts";

/** Maximum numbers of paths and parts that are shown for an expression. */
const MAX_INPUTS = 20;
const MAX_PARTS = 20;
const MAX_EVERY_PART = 200;
/** Maximum numbers of turns that are shown of a loop, and of all loops of an expression. */
const MAX_TURNS = 8;
const MAX_ALL_TURNS = 64;

/** What was computed outside loops, or in one turn of a loop. */
class Frame {
  readonly results = new Map<Node, CelValue | Failure>();
  readonly loops = new Map<Loop, LoopRun>();
  /** The values of the loop's variables. */
  readonly variables: readonly CelValue[];

  constructor(variables: readonly CelValue[]) {
    this.variables = variables;
  }
}

interface LoopRun {
  readonly frames: Frame[];
  count: number;
}

/** A second compilation of an expression, whose parts are recorded. Evaluations are synchronous, so one record serves them all. */
export class ObservedExpression {
  /** Evaluates the expression as its first compilation does, for `observationOf`. */
  readonly evaluator: Evaluator;
  /** Whether the value can contain a text that stands in the expression: it may be a secret of the configuration, such as a credential. */
  readonly yieldsLiterals: boolean;
  readonly #inputs: readonly { readonly text: string; readonly path: readonly string[]; readonly read: Evaluator }[];
  /** What may be replaced. */
  readonly #sources: readonly { readonly path: readonly string[]; readonly presence: boolean }[];
  readonly #whole: Part;
  readonly #parts: readonly Part[];
  readonly #every: boolean;
  /** What the last evaluation computed outside loops. */
  #top = new Frame([]);
  /** The frame of the part that runs now; undefined in a turn that is not shown. */
  #frame: Frame | undefined = this.#top;
  /** Turns of the last evaluation that are shown. */
  #turns = 0;
  #result: CelValue | Failure = null;
  /** The frames around the loops that run now, the innermost last. */
  readonly #around: (Frame | undefined)[] = [];

  /** `text` is a valid expression of the environment. `every`: paths and what is in loops are parts too, and maps and bytes are shown. */
  constructor(text: string, environment: Environment, every = false) {
    this.#every = every;
    const root = parse(text, LIMITS);
    const checked = check(root, text, environment);
    const survey = new Survey(root, checked, environment, every);
    this.yieldsLiterals = yieldsLiterals(root, checked);
    this.#whole = { node: root, reads: survey.reads, loop: undefined };
    this.#sources = [...survey.sources].flatMap(([node, paths]) =>
      paths.map((path) => ({ path, presence: node.kind === "select" && node.test })),
    );
    this.#parts = survey.parts.slice(0, every ? MAX_EVERY_PART : MAX_PARTS);
    const recorded = new Set(this.#parts.map(({ node }) => node));
    const { compile } = compilationOf(checked, text, (node, run) => {
      const paths = survey.sources.get(node);
      const evaluator = paths === undefined ? run : replaceable(paths, node.kind === "select" && node.test, run);
      const watched = every && node.kind === "loop" ? this.#looping(evaluator) : evaluator;
      const recorder = recorded.has(node) ? this.#recorder(node, watched) : watched;
      const loop = survey.turns.get(node);
      return loop === undefined ? recorder : this.#turning(loop, checked.slots.get(loop) ?? 0, recorder);
    });
    this.#inputs = [...survey.inputs].slice(0, MAX_INPUTS).map(([path, node]) => {
      const fields = survey.pathOf(node) ?? [];
      const read = compile(node.kind === "select" ? { ...node, test: false } : node);
      return { text: path, path: fields.slice(1), read: replaceable([fields], false, read) };
    });
    const [run, cost] = [compile(root), costOf(root)];
    this.evaluator = (activation, slots) => {
      this.#top = new Frame([]);
      this.#frame = this.#top;
      this.#turns = 0;
      this.#around.length = 0;
      charge(cost);
      this.#result = run(activation, slots);
      return this.#result;
    };
  }

  /** Whether something that the expression may read is assumed, or not known. */
  asks(unknowns: Unknowns): boolean {
    return this.#sources.some(({ path, presence }) => unknowns.at(path, presence) !== undefined);
  }

  /** What the last evaluation read and computed. The budget of the request does not pay for showing it. */
  observationOf(activation: Activation): Observation {
    const budget = new Budget();
    const inputs = new Map<string, InputValue>();
    for (const { text, path, read } of this.#inputs) {
      const result = shown(() => withoutAbsence(read(activation, [])), budget);
      if (result !== undefined && "value" in result) inputs.set(text, { text, path, value: result.value });
    }
    const computed = (
      { node, reads }: Pick<Part, "node" | "reads">,
      found: CelValue | Failure,
    ): PartValue | undefined => {
      const result = shown(() => found, budget, this.#every);
      if (result === undefined) return undefined;
      const known = [...reads.inputs].flatMap((text) => inputs.get(text) ?? []);
      const readsMore = reads.more || known.length < reads.inputs.size;
      return { from: node.from, to: node.to, result, reads: known, readsMore };
    };
    const partOf = (part: Part, found: CelValue | Failure, frame: Frame): PartValue | undefined => {
      const value = computed(part, found);
      const run = part.node.kind === "loop" ? frame.loops.get(part.node) : undefined;
      if (value === undefined || run === undefined || part.node.kind !== "loop") return value;
      const loop = part.node;
      return { ...value, turns: { shown: run.frames.map((each) => turnOf(loop, part.reads, each)), count: run.count } };
    };
    const partsIn = (loop: Loop | undefined, frame: Frame): PartValue[] =>
      this.#parts.flatMap((part) => {
        const found = part.loop === loop ? frame.results.get(part.node) : undefined;
        return found === undefined || this.#isShown(part.node, found, frame) ? [] : (partOf(part, found, frame) ?? []);
      });
    const turnOf = (loop: Loop, reads: Reads, frame: Frame): Turn => ({
      variables: loop.variables.map((name, i) => {
        const value = computed({ node: loop.range, reads }, frame.variables[i] ?? null);
        return { name, ...(value !== undefined && { value }) };
      }),
      parts: partsIn(loop, frame),
    });
    const needs = this.#result instanceof Failure ? this.#result.needs : undefined;
    return {
      ...(needs !== undefined && { needs }),
      whole: partOf(this.#whole, this.#result, this.#top),
      inputs: [...inputs.values()],
      parts: partsIn(undefined, this.#top),
    };
  }

  /** Whether the expression or an inner part shows the same failure. */
  #isShown(node: Node, result: CelValue | Failure, { results }: Frame): boolean {
    if (!(result instanceof Failure)) return false;
    if (result === this.#result && !result.absent) return true;
    return this.#parts.some(
      ({ node: inner }) =>
        inner !== node && inner.from >= node.from && inner.to <= node.to && results.get(inner) === result,
    );
  }

  #recorder(node: Node, run: Evaluator): Evaluator {
    return (activation, slots) => {
      const result = run(activation, slots);
      this.#frame?.results.set(node, result);
      return result;
    };
  }

  /** Returns to the frame around the loop when the loop ends. */
  #looping(run: Evaluator): Evaluator {
    return (activation, slots) => {
      const around = this.#frame;
      this.#around.push(around);
      const result = run(activation, slots);
      this.#around.pop();
      this.#frame = around;
      return result;
    };
  }

  /** Begins a turn of a loop, whose variables are in the slots from `slot` on. */
  #turning(loop: Loop, slot: number, run: Evaluator): Evaluator {
    return (activation, slots) => {
      const around = this.#around.at(-1);
      this.#frame = around && this.#turnIn(around, loop, slots.slice(slot, slot + loop.variables.length));
      return run(activation, slots);
    };
  }

  /** The frame of the next turn; undefined if the turn is not shown. */
  #turnIn({ loops }: Frame, loop: Loop, variables: readonly CelValue[]): Frame | undefined {
    const known = loops.get(loop) ?? { frames: [], count: 0 };
    loops.set(loop, known);
    known.count++;
    if (known.frames.length === MAX_TURNS || this.#turns === MAX_ALL_TURNS) return undefined;
    this.#turns++;
    const frame = new Frame(variables);
    known.frames.push(frame);
    return frame;
  }
}

/** Asks first whether what stands at one of the paths is assumed, or not known. */
function replaceable(paths: readonly (readonly string[])[], presence: boolean, run: Evaluator): Evaluator {
  return (activation, slots) => {
    const { unknowns } = activation;
    for (const path of unknowns === undefined ? [] : paths) {
      const other = unknowns?.at(path, presence);
      if (other !== undefined) return other;
    }
    return run(activation, slots);
  };
}

function withoutAbsence(value: CelValue | Failure): CelValue | Failure {
  return value instanceof Failure && value.absent ? null : value;
}

function yieldsLiterals(node: Node, checked: Checked): boolean {
  if (node.kind === "literal") return typeof node.value === "string" || node.value instanceof Uint8Array;
  if (checked.types.get(node)?.name === "bool") return false;
  if (node.kind === "call" && checked.customCalls.has(node)) return true;
  const isIndex = node.kind === "call" && (node.name === "_[_]" || node.name === "_[?_]");
  return children(node).some((child, i) => !(isIndex && i === 1) && yieldsLiterals(child, checked));
}

/** A value as JSON; undefined for what is too large and, unless `every` is set, for whole maps of headers and bodies. */
function shown(read: () => CelValue | Failure, budget: Budget, every = false): PartValue["result"] | undefined {
  startBudget(budget);
  try {
    const value = read();
    if (value instanceof Failure) return { error: value.what };
    const inner = value instanceof CelOptional ? value.value : value;
    if (!every && (inner instanceof CelMapLike || inner instanceof Uint8Array)) return undefined;
    return { value: jsonOf(value), type: kindOf(value) };
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
  /** The innermost loop around it. */
  readonly loop: Loop | undefined;
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
  /** The nodes that read variables or chance, with what they read: paths from variables. */
  readonly sources = new Map<Node, readonly (readonly string[])[]>();
  /** The nodes that begin the turns of loops whose parts are observed. */
  readonly turns = new Map<Node, Loop>();
  /** What the expression is computed from. */
  readonly reads: Reads;
  readonly #checked: Checked;
  readonly #variables: Environment["variables"];
  readonly #every: boolean;
  /** The innermost loop of the node that is visited. */
  #loop: Loop | undefined;

  constructor(root: Node, checked: Checked, { variables }: Environment, every: boolean) {
    this.#checked = checked;
    this.#every = every;
    this.#variables = variables;
    this.reads = this.#visit(root, new Map(), root);
    this.parts.sort((a, b) => a.node.from - b.node.from || b.node.to - a.node.to);
  }

  /** `within`: the node of which this is a part; undefined in loops whose parts are not recorded. */
  #visit(node: Node, bound: Bound, within: Node | undefined): Reads {
    const path = this.pathOf(node, bound);
    if (path !== undefined) {
      this.sources.set(node, [path]);
      const reads = this.#readsOfPath(path, node);
      if (this.#every && within !== undefined && node !== within) this.parts.push({ node, reads, loop: this.#loop });
      return reads;
    }
    if (node.kind === "identifier") return bound.get(node.name) ?? NOTHING;
    const reads = this.#readsOf(node, bound, within);
    const isConstant = !reads.more && reads.inputs.size === 0 && this.#loop === undefined;
    if (within !== undefined && node !== within && isResult(node, within) && !isConstant)
      this.parts.push({ node, reads, loop: this.#loop });
    return reads;
  }

  #readsOfPath(path: readonly string[], node: Node): Reads {
    if (path.length === 1) return MORE;
    const text = textOf(path);
    if (!this.inputs.has(text)) this.inputs.set(text, node);
    return { inputs: new Set([text]), more: false };
  }

  #readsOf(node: Node, bound: Bound, within: Node | undefined): Reads {
    const inner = within && node;
    switch (node.kind) {
      case "loop": {
        const range = this.#visit(node.range, bound, inner);
        const turn = new Map([...bound, ...node.variables.map((name) => [name, range] as const)]);
        const around = this.#loop;
        if (this.#every) {
          this.#loop = node;
          this.turns.set(node.filter ?? node.body, node);
        }
        const bodies = [node.filter, node.body].flatMap((each) =>
          each === undefined ? [] : this.#visit(each, turn, this.#every ? inner : undefined),
        );
        this.#loop = around;
        return union([range, ...bodies]);
      }
      case "bind":
      case "optionalMap": {
        const value = this.#visit(node.kind === "bind" ? node.value : node.operand, bound, inner);
        return union([value, this.#visit(node.body, new Map([...bound, [node.name, value]]), inner)]);
      }
      default: {
        const own = node.kind === "call" && this.#readsItself(node.name, node) ? [MORE] : [];
        const parts = children(node).map((child) => this.#visit(child, bound, inner));
        if (node.kind === "call") this.#noteSource(node, bound);
        return union([...own, ...parts]);
      }
    }
  }

  /** Whether a call reads more than its arguments. */
  #readsItself(name: string, node: Node & { kind: "call" }): boolean {
    const custom = this.#checked.customCalls.get(node)?.definition;
    return name === "unredacted" || this.#checked.references.has(node) || (custom?.reads.size ?? 0) > 0;
  }

  /** Calls that read more than their arguments have, or less. */
  #noteSource(node: Call, bound: Bound): void {
    const { name, target } = node;
    const custom = this.#checked.customCalls.get(node)?.definition;
    // The bodies are among the names.
    if (custom !== undefined) this.sources.set(node, [...custom.reads].map((read) => read.split(".")).map(withHeaders));
    else if (target === undefined && (name === "random" || name === "uuid")) this.sources.set(node, [[`${name}()`]]);
    else if (name === "cookie" && target !== undefined) {
      const path = this.pathOf(target, bound);
      if (path === undefined) return;
      this.sources.delete(target);
      this.sources.set(node, [[...path, "cookie"]]);
    }
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

/** Of a whole message, its headers can be unknown. */
function withHeaders(path: readonly string[]): readonly string[] {
  return path.length === 1 && path[0] === "request" ? ["request", "headers"] : path;
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
