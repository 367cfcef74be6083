/** Finds conditions that a client can make unmet by leaving something out, though they read as if they forbade it. */
import { FINDINGS, SOURCE_FIELDS } from "../environment/activation.ts";
import type { Checked } from "../environment/environment.ts";
import { children, type Node } from "../syntax/ast.ts";

/** A part of a condition that is not met if the value that it reads is absent, contrary to how it reads. */
export interface AbsenceTrap {
  /** Place in the expression. */
  readonly at: number;
  /** The value that may be absent, as written: `request.headers["x-role"]`. */
  readonly reads: string;
  /** The same with a default value, as a suggestion. */
  readonly safe: string;
}

const COMPARISONS: ReadonlySet<string> = new Set(["_!=_", "_<_", "_<=_", "_>_", "_>=_"]);
/** Variables whose fields are optional. */
const UNCERTAIN: ReadonlySet<string> = new Set([...FINDINGS, "backend"]);
/** Fields of `source` that may be absent. */
const OPTIONAL_OF_SOURCE: ReadonlySet<string> = new Set(
  Object.entries(SOURCE_FIELDS).flatMap(([field, from]) => (from === "address" ? [] : [field])),
);

/** A field that is null if it is absent. */
const NULLABLE = "source.identity";

/**
 * Values that a `deny` rule negates or compares although they may be absent: without the value the rule is not met, and the
 * request passes. Values whose presence the expression checks, by has(), in, null, default() or `?`, are not reported.
 */
export function absenceTraps(root: Node, { references }: Checked): readonly AbsenceTrap[] {
  const asked: string[] = [];
  const found = new Map<string, AbsenceTrap>();
  const visit = (node: Node, doubtful: boolean): void => {
    if (node.kind === "fallback") return;
    const questioned = presenceTrapOf(node, doubtful, references);
    if (questioned !== undefined) {
      found.set(questioned.reads, questioned);
      return;
    }
    asked.push(...askedBy(node));
    if (node.kind === "select" && node.test) return;
    const trap = doubtful ? trapOf(node, references) : undefined;
    if (trap !== undefined) {
      if (!found.has(trap.reads)) found.set(trap.reads, trap);
      return;
    }
    const inside = doubtful || (node.kind === "call" && (node.name === "!_" || COMPARISONS.has(node.name)));
    for (const child of children(node)) visit(child, inside);
  };
  visit(root, false);
  return [...found.values()].filter(({ reads }) => !asked.some((each) => reads.startsWith(each)));
}

/** Values whose presence a node checks without failing: `has(jwt.sub)`, `"x" in request.headers`, `jwt != null`. */
function askedBy(node: Node): readonly string[] {
  if (node.kind === "select") return node.test ? definite(textOf(node)) : [];
  if (node.kind !== "call") return [];
  const [left, right] = node.args;
  if (left === undefined || right === undefined) return [];
  if (node.name === "@in" && left.kind === "literal")
    return definite(textOf(right)).flatMap((text) => [
      `${text}[${JSON.stringify(left.value)}]`,
      `${text}.${String(left.value)}`,
    ]);
  const isEquality = node.name === "_==_" || node.name === "_!=_";
  if (!isEquality || !(isNull(left) || isNull(right))) return [];
  return [left, right].flatMap((side) => definite(textOf(side)));
}

/**
 * A check for presence that itself fails if a parent is absent: null has no fields to compare with null and no keys to search.
 * Only has() returns false there.
 */
function presenceTrapOf(node: Node, doubtful: boolean, references: Checked["references"]): AbsenceTrap | undefined {
  if (node.kind !== "call") return undefined;
  const [left, right] = node.args;
  if (left === undefined || right === undefined) return undefined;
  if (node.name === "@in") {
    const reference = doubtful ? references.get(right) : undefined;
    if (reference?.kind !== "variable" || !UNCERTAIN.has(reference.name)) return undefined;
    return { at: right.at, reads: reference.name, safe: `default(${reference.name}, {})` };
  }
  if (node.name !== (doubtful ? "_!=_" : "_==_")) return undefined;
  const side = isNull(right) ? left : isNull(left) ? right : undefined;
  const trap = side && trapOf(side, references);
  // The variable itself is never absent and needs no check; `source.identity` is null too.
  return trap && trap.reads !== NULLABLE ? { ...trap, safe: `default(${trap.reads}, null)` } : undefined;
}

function isNull(node: Node): boolean {
  return node.kind === "literal" && node.value === null;
}

function definite(text: string | undefined): readonly string[] {
  return text === undefined ? [] : [text];
}

function trapOf(node: Node, references: Checked["references"]): AbsenceTrap | undefined {
  const reads = textOf(node);
  if (reads === undefined) return undefined;
  if (node.kind === "call" && node.name === "cookie") return { at: node.at, reads, safe: `default(${reads}, "")` };
  const { root, keys } = chainOf(node);
  const [first, second] = keys;
  if (first === undefined) return undefined;
  if (root.kind === "call") return { at: node.at, reads, safe: `default(${reads}, "")` };
  const reference = references.get(root);
  if (reference?.kind !== "variable") return undefined;
  const { name } = reference;
  const optional = (from: readonly string[]): string => from.map((key) => `[?${JSON.stringify(key)}]`).join("");
  if ((name === "request" || name === "response") && first === "headers" && second !== undefined)
    return { at: node.at, reads, safe: `${name}.headers${optional(keys.slice(1))}.orValue("")` };
  if (!UNCERTAIN.has(name) && !(name === "source" && OPTIONAL_OF_SOURCE.has(first))) return undefined;
  return { at: node.at, reads, safe: `${name}${optional(keys)}.orValue("")` };
}

/** `a.b["c"]` as `a` with the keys `b` and `c`. */
function chainOf(node: Node): { readonly root: Node; readonly keys: readonly string[] } {
  const [container, key] = stepOf(node);
  if (container === undefined || key === undefined) return { root: node, keys: [] };
  const { root, keys } = chainOf(container);
  return { root, keys: [...keys, key] };
}

/** The container and the constant key of `a.b` and `a["b"]`. */
function stepOf(node: Node): readonly [container?: Node | undefined, key?: string | undefined] {
  if (node.kind === "select") return node.optional ? [] : [node.operand, node.field];
  if (node.kind !== "call" || node.name !== "_[_]") return [];
  const [container, key] = node.args;
  return key?.kind === "literal" && typeof key.value === "string" ? [container, key.value] : [];
}

/** Fields and constant keys of a variable, of JSON, or a cookie, as written; undefined for anything else. */
function textOf(node: Node): string | undefined {
  if (node.kind === "identifier") return node.name;
  const [container, key] = stepOf(node);
  const outer = container && textOf(container);
  if (outer !== undefined && key !== undefined)
    return node.kind === "select" ? `${outer}.${key}` : `${outer}[${JSON.stringify(key)}]`;
  if (node.kind !== "call") return undefined;
  const [argument] = node.args;
  if (node.name === "json" && node.target === undefined && argument !== undefined) {
    const inner = textOf(argument);
    return inner && `json(${inner})`;
  }
  if (node.name !== "cookie" || node.target === undefined || argument?.kind !== "literal") return undefined;
  const headers = textOf(node.target);
  return headers && `${headers}.cookie(${JSON.stringify(argument.value)})`;
}
