/** The types of what macros iterate over, and of their results. */
import { BOOL, DYN, formatType, INT, list, map, STRING, type Type } from "../environment/types.ts";
import type { Loop, LoopKind } from "../syntax/ast.ts";

/** Types of the elements that a loop iterates over. */
interface LoopTypes {
  /** Index of lists, key of maps. */
  readonly key: Type;
  /** Element of lists, value of maps. */
  readonly value: Type;
  /** Of the loop's own variables. */
  readonly variables: readonly Type[];
  /** Why it cannot be iterated over. */
  readonly problem?: string;
}

/** Loops whose body is a condition. */
const PREDICATES: ReadonlySet<LoopKind> = new Set(["all", "exists", "existsOne", "filter", "filterKeys"]);

export function isPredicate({ loop }: Loop): boolean {
  return PREDICATES.has(loop);
}

export function loopTypes({ loop, variables }: Loop, range: Type): LoopTypes {
  const onlyMaps = loop === "mapValues" || loop === "filterKeys";
  const parts = partsOf(range, onlyMaps);
  const [key, value] = parts ?? [DYN, DYN];
  const single = loop === "mapValues" || range.name === "list" ? value : key;
  const wanted = `${loop} needs a ${onlyMaps ? "map" : "list or map"}, not ${formatType(range)}`;
  return {
    key,
    value,
    variables: variables.length === 1 ? [single] : [key, value],
    ...(parts === undefined && { problem: wanted }),
  };
}

/** The result type of a loop whose body has the type `body`; undefined if that type is not allowed. */
export function loopResult({ loop }: Loop, { key, value, variables }: LoopTypes, body: Type): Type | undefined {
  switch (loop) {
    case "all":
    case "exists":
    case "existsOne":
      return BOOL;
    case "filter":
      return list(variables[0] ?? DYN);
    case "filterKeys":
      return map(key, value);
    case "map":
    case "transformList":
      return list(body);
    case "mapValues":
    case "transformMap":
      return map(key, body);
    case "transformMapEntry":
      if (body.name === "map") return body;
      return body.name === "dyn" ? map(DYN, DYN) : undefined;
  }
}

/** Index and element of lists, key and value of maps; undefined for other types. */
function partsOf(range: Type, onlyMaps: boolean): readonly [Type, Type] | undefined {
  if (range.name === "map" && range.params.length === 2) return [range.params[0] ?? DYN, range.params[1] ?? DYN];
  if (range.name === "list" && !onlyMaps) return [INT, range.params[0] ?? DYN];
  if (range.fields !== undefined) return [STRING, DYN];
  return range.name === "dyn" || range.variable === true ? [DYN, DYN] : undefined;
}
