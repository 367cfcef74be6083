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

/** What a value is, in words; text is not quoted, for it may be a secret. */
export function kindOf(value: unknown): string {
  if (value === null) return "empty";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string" || typeof value === "object") return typeName(typeof value);
  return String(value);
}
