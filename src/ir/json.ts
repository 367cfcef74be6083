/**
 * JSON of parts of the IR. They are plain data except for numbers that JSON lacks: metadata of credentials may be `.inf` or `.nan`,
 * and such a number is written as an object with a special key.
 */

const NUMBER = "\0number";
const NUMBER_IN_JSON = JSON.stringify(NUMBER);

/** A replacer takes three times as long, so it is used only for values that contain null or a number that JSON turns into null. */
export function jsonOf(value: unknown): string {
  const text = JSON.stringify(value);
  if (!text.includes("null")) return text;
  return JSON.stringify(value, (_key, each: unknown) =>
    typeof each === "number" && !Number.isFinite(each) ? { [NUMBER]: String(each) } : each,
  );
}

/** Reads what `jsonOf` has written. Throws a SyntaxError for text that is not JSON. */
export function parseJson(text: string): unknown {
  return JSON.parse(text, text.includes(NUMBER_IN_JSON) ? numberOf : undefined);
}

function numberOf(_key: string, value: unknown): unknown {
  const isNumber = typeof value === "object" && value !== null && NUMBER in value;
  return isNumber ? Number(value[NUMBER]) : value;
}
