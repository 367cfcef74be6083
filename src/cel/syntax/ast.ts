/** The tree of an expression, and how it is written as text again. */
import type { CelValue } from "../values/types.ts";

/** Where a node stands, as offsets into the text in UTF-16 units. Brackets around the node are outside. */
export interface Place {
  /** Where errors point, such as an operator's sign. */
  readonly at: number;
  readonly from: number;
  readonly to: number;
}

interface Literal extends Place {
  readonly kind: "literal";
  readonly value: CelValue;
}

/** A name, also `a.b` where a macro made it; `absolute` for `.name`, which no container or loop variable hides. */
export interface Identifier extends Place {
  readonly kind: "identifier";
  readonly name: string;
  readonly absolute: boolean;
}

/** `operand.field`, `operand.?field`, and `has(operand.field)` when `test`. */
export interface Select extends Place {
  readonly kind: "select";
  readonly operand: Node;
  readonly field: string;
  readonly test: boolean;
  readonly optional: boolean;
}

/** A function or, by names such as `_+_`, an operator. `target`: the receiver of a method. */
export interface Call extends Place {
  readonly kind: "call";
  readonly name: string;
  readonly target: Node | undefined;
  readonly args: readonly Node[];
}

export interface ListLiteral extends Place {
  readonly kind: "list";
  readonly elements: readonly { readonly value: Node; readonly optional: boolean }[];
}

export interface MapLiteral extends Place {
  readonly kind: "map";
  readonly entries: readonly { readonly key: Node; readonly value: Node; readonly optional: boolean }[];
}

/** `pkg.Message{field: value}`; read so that the error can say that there are no messages here. */
interface MessageLiteral extends Place {
  readonly kind: "message";
  readonly name: string;
}

export type LoopKind =
  | "all"
  | "exists"
  | "existsOne"
  | "filter"
  | "map"
  | "transformList"
  | "transformMap"
  | "transformMapEntry"
  | "mapValues"
  | "filterKeys";

/** A macro that iterates over a list or map. One variable: element or key; two: index and element, or key and value. */
export interface Loop extends Place {
  readonly kind: "loop";
  readonly loop: LoopKind;
  readonly range: Node;
  readonly variables: readonly string[];
  /** Elements for which this is not true are skipped. */
  readonly filter: Node | undefined;
  readonly body: Node;
}

/** `cel.bind(name, value, body)`. */
export interface Bind extends Place {
  readonly kind: "bind";
  readonly name: string;
  readonly value: Node;
  readonly body: Node;
}

/** `opt.optMap(name, body)` and, when `flat`, `optFlatMap`. */
export interface OptionalMap extends Place {
  readonly kind: "optionalMap";
  readonly operand: Node;
  readonly name: string;
  readonly body: Node;
  readonly flat: boolean;
}

/** `default(x, y)`, `coalesce(x, y, …)`: the first argument that is neither an error nor null. */
export interface Fallback extends Place {
  readonly kind: "fallback";
  readonly choices: readonly Node[];
  /** Skips only absent values; any other error is the result. */
  readonly onlyAbsent: boolean;
}

export type Node =
  | Literal
  | Identifier
  | Select
  | Call
  | ListLiteral
  | MapLiteral
  | MessageLiteral
  | Loop
  | Bind
  | OptionalMap
  | Fallback;

/** The children of a node, in source order. */
export function children(node: Node): readonly Node[] {
  switch (node.kind) {
    case "literal":
    case "identifier":
    case "message":
      return [];
    case "select":
      return [node.operand];
    case "call":
      return node.target === undefined ? node.args : [node.target, ...node.args];
    case "list":
      return node.elements.map(({ value }) => value);
    case "map":
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case "loop":
      return node.filter === undefined ? [node.range, node.body] : [node.range, node.filter, node.body];
    case "bind":
      return [node.value, node.body];
    case "optionalMap":
      return [node.operand, node.body];
    case "fallback":
      return node.choices;
  }
}

/** `a.b.c` as text if the node consists of names only, otherwise undefined. */
export function nameOf(node: Node): string | undefined {
  if (node.kind === "identifier") return node.absolute ? `.${node.name}` : node.name;
  if (node.kind !== "select" || node.test || node.optional) return undefined;
  const operand = nameOf(node.operand);
  return operand === undefined ? undefined : `${operand}.${node.field}`;
}

const RESERVED = new Set(
  "as break const continue else for function if import let loop package namespace return var void while".split(" "),
);

/** Whether a word can never be the name of a variable. */
export function isReserved(word: string): boolean {
  return RESERVED.has(word) || word === "in" || word === "true" || word === "false" || word === "null";
}
