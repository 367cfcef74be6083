import type { Json } from "./converted.ts";

/** Policies of one route; of a kind that several set, the fields are put together. */
export function merged(...sets: readonly Json[]): Json {
  const result: Record<string, unknown> = {};
  for (const set of sets)
    for (const [kind, value] of Object.entries(set))
      result[kind] = kind in result ? together(result[kind], value) : value;
  return result;
}

function together(a: unknown, b: unknown): unknown {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return b;
  if (Array.isArray(a) && Array.isArray(b)) return [...a, ...b];
  const result: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) result[key] = key in result ? together(result[key], value) : value;
  return result;
}
