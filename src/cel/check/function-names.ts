import type { CustomFunction } from "../custom/custom-function.ts";
import { formatSignature } from "../custom/custom-function.ts";
import type { Overload } from "../functions/overload.ts";
import { candidates, type Environment } from "./environment.ts";
import { hint } from "./suggest.ts";

/** What other languages call functions that CEL has. */
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

/** The overloads that a name stands for; none when there is no such function. */
export function overloadsOf(name: string, { functions, container }: Environment): readonly Overload[] {
  for (const candidate of candidates(name, container)) {
    const overloads = functions.get(candidate);
    if (overloads !== undefined) return overloads;
  }
  return [];
}

/** Whether functions have names that begin with `name` and a dot, as `base64` has. */
export function isNamespace(name: string, { functions }: Environment): boolean {
  return [...functions.keys()].some((known) => known.startsWith(`${name}.`));
}

/** What is wrong with a call of a name that no function has; `member` when it is called after a dot. */
export function unknownFunction(name: string, member: boolean, { functions, custom }: Environment): string {
  const of = (all: ReadonlyMap<string, readonly { readonly member: boolean }[]>): string[] =>
    [...all].filter(([, list]) => list.some((item) => item.member === member)).map(([known]) => known);
  const meant = ELSEWHERE.get(name);
  if (meant !== undefined) return `unknown function ${name}; did you mean ${meant}?`;
  return `unknown function ${name}${hint(name, [...of(functions), ...of(custom)])}`;
}

/** What is wrong with a call that fits no definition of its name, and what would fit. */
export function wrongArguments(name: string, definitions: readonly CustomFunction[], given: string): string {
  return `no such overload: ${given}; ${name} is defined as ${definitions.map(formatSignature).join(" and ")}`;
}

/** Why a function cannot be called here; undefined when all that it reads is known here. */
export function missingVariable(definition: CustomFunction, { variables }: Environment): string | undefined {
  for (const [name, through] of definition.needs) {
    if (variables.has(name)) continue;
    const reader = through.length === 0 ? "it" : `${formatSignature(through.at(-1) ?? definition)}, which it calls,`;
    return `${formatSignature(definition)} cannot be called here: ${reader} reads ${name}, which is not known here`;
  }
  return undefined;
}
