const TYPE_NAMES: Readonly<Record<string, string>> = {
  object: "an object",
  record: "an object",
  array: "a list",
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
};

/** The name that people have for a type of the schema. */
export function typeName(type: string): string {
  return TYPE_NAMES[type] ?? type;
}

/** Fields named to show what an object is; more would hide the rest of the message. */
const MAX_FIELDS = 4;

/** An object of which some fields are known, in words. */
export function objectWith(fields: readonly string[]): string {
  if (fields.length === 0) return typeName("object");
  const shown = fields.slice(0, MAX_FIELDS).join(", ");
  return `${typeName("object")} with fields such as ${shown}`;
}

/** What a value is, in words; text is not quoted, for it may be a secret, and of a `secret` number that it is one. */
export function kindOf(value: unknown, secret = false): string {
  if (value === null) return "empty";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string" || typeof value === "object") return typeName(typeof value);
  return secret && typeof value === "number" ? typeName("number") : String(value);
}
