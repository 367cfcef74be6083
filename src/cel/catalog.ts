/** The names that expressions can use, with their types and an example each, for those who write expressions. */
import { compileFunctions } from "./custom/compile-functions.ts";
import { formatSignature } from "./environment/custom-function.ts";
import type { Overload } from "./environment/overload.ts";
import { DYN, formatType, type Type } from "./environment/types.ts";
import { CEL_EXAMPLES } from "./examples.ts";
import { FUNCTIONS } from "./functions/functions.ts";
import { MACROS } from "./syntax/macros.ts";
import type { Scope } from "./variables/scopes.ts";
import { VARIABLES } from "./variables/variables.ts";

/** What an expression in a scope can use. */
export interface Catalog {
  /** Each before its fields: `request`, `request.method`. */
  readonly variables: readonly CatalogVariable[];
  /** Functions and macros, in the order of docs/expressions.md; those of the configuration come first. */
  readonly functions: readonly CatalogFunction[];
}

interface CatalogVariable {
  /** With the variable: `request.headers`. */
  readonly name: string;
  /** `dyn`: known only when it is evaluated. */
  readonly type: string;
  /** It has fields, which follow. */
  readonly fields?: true;
}

export interface CatalogFunction {
  /** With its namespace: `math.abs`. */
  readonly name: string;
  /** What it is for, such as `Text`. */
  readonly group: string;
  /** A method, and the types of the values that have it; empty: values of all types. Absent: it is called by its name alone. */
  readonly of?: readonly string[];
  /** `(string, int): string`, without the receiver; a function of the configuration as it is defined. Empty for macros, whose example says it. */
  readonly signatures: readonly string[];
  /** An expression that calls it, and its value as JSON, which is empty if it differs each time. */
  readonly example?: readonly [expression: string, value: string];
}

/** `customFunctions`: the text of the configuration. Throws CelError for a mistake in it. */
export function catalogOf(scope: Scope, customFunctions: string): Catalog {
  return {
    variables: [...VARIABLES[scope]].flatMap(([name, { type }]) => variablesOf(name, type)),
    functions: [...customOf(customFunctions), ...STANDARD],
  };
}

function variablesOf(name: string, type: Type): CatalogVariable[] {
  const { fields } = type;
  if (fields === undefined) return [{ name, type: formatType(type) }];
  const below = [...fields].flatMap(([field, inner]) => variablesOf(`${name}.${field}`, inner));
  return [{ name, type: "record", fields: true }, ...below];
}

function customOf(text: string): CatalogFunction[] {
  if (text === "") return [];
  return [...compileFunctions(text)].flatMap(([name, definitions]) =>
    [false, true].flatMap((member) => {
      const signatures = definitions.filter((each) => each.member === member).map(formatSignature);
      if (signatures.length === 0) return [];
      return [{ name, group: "Functions of the configuration", ...(member && { of: [] }), signatures }];
    }),
  );
}

const EXAMPLES = CEL_EXAMPLES.flatMap(([group, examples]) =>
  examples.map(([expression, value]) => ({ group, example: [expression, value === "…" ? "" : value] as const })),
);

/** Functions of the language and of the gateway, and macros, which have no signatures. */
const STANDARD: readonly CatalogFunction[] = [
  ...[...FUNCTIONS].flatMap(([name, overloads]) => [
    { name, member: false, overloads: overloads.filter(({ member }) => !member) },
    { name, member: true, overloads: overloads.filter(({ member }) => member) },
  ]),
  ...MACROS.map((macro) => ({ ...macro, overloads: undefined })),
]
  // Operators have names too, such as `_+_`.
  .filter(({ name, overloads }) => overloads?.length !== 0 && /^[\w.]+$/.test(name))
  .map(({ name, member, overloads = [] }) => ({ name, member, overloads, at: exampleOf(name, member) }))
  .sort((a, b) => a.at - b.at)
  .flatMap(({ name, member, overloads, at }) => {
    const { group, example } = EXAMPLES[at] ?? {};
    if (group === undefined || example === undefined) return [];
    const signatures = [...new Set(overloads.map(signatureOf))];
    return [{ name, group, ...(member && { of: receiversOf(overloads) }), signatures, example }];
  });

/** The first example that calls it in this form, or else in the other one. */
function exampleOf(name: string, member: boolean): number {
  const escaped = name.replaceAll(".", "\\.");
  const call = new RegExp(member ? `\\.${escaped}\\(` : `(?<![\\w.])${escaped}\\(`);
  const at = EXAMPLES.findIndex(({ example: [expression] }) => call.test(expression));
  return at >= 0 ? at : EXAMPLES.findIndex(({ example: [expression] }) => expression.includes(`${name}(`));
}

function receiversOf(overloads: readonly Overload[]): string[] {
  const types = new Set(overloads.map(({ params: [receiver = DYN] }) => (receiver.variable ? DYN : receiver).name));
  return types.has(DYN.name) ? [] : [...types];
}

function signatureOf({ member, params, result, variadic }: Overload): string {
  const types = params.slice(member ? 1 : 0).map(formatType);
  return `(${types.join(", ")}${variadic === true ? "…" : ""}): ${formatType(result)}`;
}
