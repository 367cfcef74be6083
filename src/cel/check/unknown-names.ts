/** Error messages about names that are unknown, or unknown in a scope. */
import { suggest } from "../../base/suggest.ts";
import { type CustomFunction, formatSignature } from "../environment/custom-function.ts";
import type { Environment } from "../environment/environment.ts";
import type { Hint } from "../syntax/cel-error.ts";

/** Names of CEL functions in other languages. */
const ELSEWHERE = new Map([
  ["len", "size"],
  ["length", "size"],
  ["count", "size"],
  ["includes", "contains"],
  ["lower", "lowerAscii"],
  ["toLowerCase", "lowerAscii"],
  ["upper", "upperAscii"],
  ["toUpperCase", "upperAscii"],
  ["toString", "string"],
]);

/** The error for a call of an unknown function; `member`: called as a method. */
export function unknownFunction(name: string, member: boolean, { functions, custom }: Environment): string {
  const of = (all: ReadonlyMap<string, readonly { readonly member: boolean }[]>): string[] =>
    [...all].filter(([, list]) => list.some((item) => item.member === member)).map(([known]) => known);
  const meant = ELSEWHERE.get(name);
  if (meant !== undefined) return `unknown function ${name}; did you mean ${meant}?`;
  return `unknown function ${name}${hint(name, [...of(functions), ...of(custom)]).help}`;
}

/** The error for a call that matches no definition of its name, with those that exist. */
export function wrongArguments(name: string, definitions: readonly CustomFunction[], given: string): string {
  return `no such overload: ${given}; ${name} is defined as ${definitions.map(formatSignature).join(" and ")}`;
}

/** Why a function cannot be called in a scope; undefined if everything that it reads is in scope. */
export function missingVariable(definition: CustomFunction, { variables }: Environment): string | undefined {
  for (const [name, through] of definition.needs) {
    if (variables.has(name)) continue;
    const reader = through.length === 0 ? "it" : `${formatSignature(through.at(-1) ?? definition)}, which it calls,`;
    return `${formatSignature(definition)} cannot be called here: ${reader} reads ${name}, which is not known here`;
  }
  return undefined;
}

/** Longer lists of names do not help. */
const MAX_NAMES = 16;

/** `; did you mean x?` for the most similar name, otherwise the list of names if it is short, otherwise empty. */
export function hint(wrong: string, names: Iterable<string>): Hint {
  // Operators have names too, such as `_+_`.
  const all = [...new Set(names)].filter((name) => !/[^\w.]/.test(name)).sort();
  const suggestion = suggest(wrong, all);
  if (suggestion !== undefined) return { help: `; did you mean ${suggestion}?`, suggestion };
  return { help: all.length > 0 && all.length <= MAX_NAMES ? `; known here: ${all.join(", ")}` : "" };
}

/**
 * A hint for `request.headers.x-user`, which CEL reads as a subtraction: `name`, at `at`, follows a header's name and a
 * minus. Undefined for any other name.
 */
export function dashedHeader(text: string, name: string, at: number): Hint | undefined {
  const begun = /\b([\w.]*headers)\.([\w-]+-)$/.exec(text.slice(0, at));
  if (begun === null) return undefined;
  const rest = /^[\w-]*/.exec(text.slice(at))?.[0] ?? name;
  return { help: `; a name with a dash is written ${begun[1]}["${begun[2]}${rest}"]` };
}
