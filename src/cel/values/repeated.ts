/** Lists that are the values of a repeated header field, which rules must not take for a text. */
import { type Failure, fail } from "./failure.ts";
import type { CelList, CelValue } from "./types.ts";

/** The names of header fields by the lists of their values. */
const REPEATED = new WeakMap<object, string>();

/**
 * Marks the list of the values of a repeated field. A rule such as `== "banned"` means a single text, which no list equals: a
 * client could get round it by sending the field twice. So comparing this list with a text fails, wherever the expression got
 * it from.
 */
export function markRepeated<List extends CelList>(name: string, values: List): List {
  REPEATED.set(values, name);
  return values;
}

/** The name of the field whose values these are; undefined for other values. */
export function repeatedField(value: CelValue): string | undefined {
  return typeof value === "object" && value !== null ? REPEATED.get(value) : undefined;
}

export function comparedAsText(name: string): string {
  return `the field ${name} is repeated; compare lists, or use join()`;
}

/** Thrown from inside a comparison, which may be of lists and maps that hold the field. */
class ComparedAsText extends Error {}

/** Throws when one of two values that are compared is a text and the other one a repeated field. */
export function checkComparable(text: CelValue, value: CelValue): void {
  if (typeof text !== "string") return;
  const field = repeatedField(value);
  if (field !== undefined) throw new ComparedAsText(comparedAsText(field));
}

/** A function that compares values: it fails when it meets a repeated field where it needs a text. */
export function comparing<A extends CelValue, B extends CelValue, Result extends CelValue>(
  compare: (a: A, b: B) => Result,
): (a: A, b: B) => Result | Failure {
  return (a, b) => {
    try {
      return compare(a, b);
    } catch (error) {
      if (error instanceof ComparedAsText) return fail(error.message);
      throw error;
    }
  };
}
