/** An object from JSON or YAML with unchecked fields. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value of a JSON text; undefined if the text is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether the value is an object: neither null nor a list. */
export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object; anything else reads as an empty one. */
export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}
