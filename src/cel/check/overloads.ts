/** Chooses among the overloads of a function by the types of its arguments, and says what is wrong if none fits. */
import type { Overload } from "../environment/overload.ts";
import { DYN, formatType, type Substitution, type Type } from "../environment/types.ts";
import { signOf } from "../functions/operators.ts";
import type { Call } from "../syntax/ast.ts";

/** Maximum number of overloads in an error message; more would bury the rest of it. */
const MAX_NAMED = 6;

/** Types that functions of the same name convert to. */
const CONVERTIBLE = new Set(["string", "int", "uint", "double", "bool"]);

/**
 * The overloads that accept values of these types, and their result type: dyn if they differ. undefined if none fits. Records
 * the bindings of type parameters in `substitution`.
 */
export function resolveOverloads(
  overloads: readonly Overload[],
  types: readonly Type[],
  substitution: Substitution,
): { readonly fitting: readonly Overload[]; readonly result: Type } | undefined {
  const fitting: Overload[] = [];
  let result: Type | undefined;
  const mark = substitution.mark();
  for (const overload of overloads) {
    const type = tryOverload(overload, types, substitution);
    // Several overloads fit: type parameters stay unbound, and the values choose at run time.
    substitution.undo(mark);
    if (type === undefined) continue;
    fitting.push(overload);
    result = result === undefined || formatType(result) === formatType(type) ? type : DYN;
    if (types.length > 0 && isExact(types, paramsFor(overload, types.length))) break;
  }
  const [only] = fitting;
  if (only === undefined || result === undefined) return undefined;
  return { fitting, result: fitting.length === 1 ? (tryOverload(only, types, substitution) ?? result) : result };
}

/** The overload's result type for values of these types, with type parameters bound; undefined if it does not fit. */
function tryOverload(overload: Overload, types: readonly Type[], substitution: Substitution): Type | undefined {
  const names = new Map<string, Type>();
  const params = paramsFor(overload, types.length).map((param) => substitution.instantiate(param, names));
  if (!substitution.assignAll(types, params)) return undefined;
  return substitution.resolve(substitution.instantiate(overload.result, names), true);
}

/** The error for a call that matches no overload, with those that exist. */
export function mismatch(node: Call, overloads: readonly Overload[], types: readonly Type[]): string {
  const shown = types.map(formatType);
  const operator = signOf(node.name, shown);
  if (operator !== undefined) return `no such overload: ${operator}${conversionHint(shown)}`;
  const target = node.target === undefined ? "" : `${shown.shift()}.`;
  const known = [...new Set(overloads.map(describe))];
  const help = known.length > MAX_NAMED ? "" : `; it takes ${known.join(" or ")}`;
  return `no such overload: ${target}${node.name}(${shown.join(", ")})${help}`;
}

/** For operands of two different simple types. */
function conversionHint([left, right]: readonly string[]): string {
  if (left === undefined || right === undefined || left === right) return "";
  if (!CONVERTIBLE.has(left) || !CONVERTIBLE.has(right)) return "";
  return `; both sides need the same type, which ${left}(…) or ${right}(…) makes them`;
}

function paramsFor({ params, variadic }: Overload, count: number): readonly Type[] {
  const last = params.at(-1);
  if (variadic !== true || last === undefined || count < params.length) return params;
  return [...params, ...Array.from({ length: count - params.length }, () => last)];
}

/** Whether the values can only be of this overload's types, so that no other needs to be tried. */
function isExact(types: readonly Type[], params: readonly Type[]): boolean {
  return params.every((param, index) => {
    const type = types[index] ?? DYN;
    if (param.name === "dyn" || param.variable === true) return false;
    return param.name === type.name && isExact(type.params, param.params);
  });
}

function describe({ name, member, params, variadic }: Overload): string {
  const types = params.map(formatType);
  const target = member ? `${types.shift()}.` : "";
  return `${target}${name}(${types.join(", ")}${variadic === true ? ", …" : ""})`;
}
