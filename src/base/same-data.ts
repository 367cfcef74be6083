import { isObject } from "./fields.ts";

/** Whether two values of JSON are equal, in whatever order objects have their fields; one that is undefined counts as absent. */
export function sameData(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((each, i) => sameData(each, b[i]));
  if (!isObject(a) || !isObject(b)) return a === b;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => sameData(a[key], b[key]));
}
