/** What can be written at a place in an expression. */
import type { Catalog } from "../src/cel/index.ts";

type Function = Catalog["functions"][number];

export interface Completion {
  /** As it is inserted, without the parentheses of a call. */
  readonly name: string;
  /** It is called, with arguments or without; absent: a variable or field. */
  readonly call?: "()" | "(…)";
  /** A type, a signature, or a macro's example. */
  readonly about: string;
}

interface Completions {
  /** Where the word begins that they replace; it ends at the place itself. */
  readonly from: number;
  readonly items: readonly Completion[];
}

const NONE: Completions = { from: 0, items: [] };

/** `asked`: also where no word has begun. */
export function completionsAt(text: string, at: number, names: Catalog, asked = false): Completions {
  const before = text.slice(0, at);
  if (isInText(before)) return NONE;
  const [, base = "", word = ""] = /((?:[A-Za-z_]\w*\.)*|[)\]}"']\.)([A-Za-z_]\w*)?$/.exec(before) ?? [];
  if (base === "" && word === "" && !asked) return NONE;
  const begins = (name: string): boolean => name.toLowerCase().startsWith(word.toLowerCase());
  const items = (base === "" ? startsOf(names) : membersOf(base.slice(0, -1), names)).filter(({ name }) =>
    begins(name),
  );
  const [only] = items;
  const isWhole = items.length === 1 && only?.name === word && only.call === undefined;
  return isWhole ? NONE : { from: at - word.length, items };
}

/** Whether a text ends within a literal text. */
function isInText(before: string): boolean {
  return /["']/.test(before.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, (literal) => " ".repeat(literal.length)));
}

/** Variables, and functions that are called by their names alone. */
function startsOf({ variables, functions }: Catalog): Completion[] {
  return [
    ...variables.filter(({ name }) => !name.includes(".")).map(({ name, type }) => ({ name, about: type })),
    ...functions.filter((each) => each.of === undefined).map((each) => called(each, each.name)),
  ];
}

/** Fields and methods of what stands before a dot: a path, or the end of another value. */
function membersOf(base: string, { variables, functions }: Catalog): Completion[] {
  const known = variables.find(({ name }) => name === base);
  const prefix = `${base}.`;
  const inside = functions.filter((each) => each.of === undefined && each.name.startsWith(prefix));
  if (inside.length > 0) return inside.map((each) => called(each, each.name.slice(prefix.length)));
  const fields = variables.flatMap(({ name, type }) => {
    const field = name.startsWith(prefix) ? name.slice(prefix.length) : "";
    return field === "" || field.includes(".") ? [] : [{ name: field, about: type }];
  });
  if (known?.fields === true) return fields;
  const type = base === '"' || base === "'" ? "string" : (known?.type ?? "dyn").replace(/<.*/, "");
  const fits = ({ of }: Function): boolean =>
    of !== undefined && (type === "dyn" || of.length === 0 || of.includes(type));
  return functions.filter(fits).map((each) => called(each, each.name));
}

function called({ signatures, example }: Function, name: string): Completion {
  const signature = signatures[0] ?? example?.[0] ?? "";
  return { name, call: signature.includes("()") ? "()" : "(…)", about: signature };
}
