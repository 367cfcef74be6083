import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** Values for a `google.protobuf.Struct`: what JSON cannot express is left out, and null inside lists. */
export function structOf(values: object): JsonObject {
  // Without a prototype, because `__proto__` is a key like any other.
  const struct: JsonObject = Object.create(null);
  for (const [key, value] of Object.entries(values)) if (value !== undefined) struct[key] = jsonOf(value);
  return struct;
}

function jsonOf(value: unknown): JsonValue {
  if (typeof value === "number" || typeof value === "string" || typeof value === "boolean") return value;
  if (Array.isArray(value)) return value.map(jsonOf);
  return typeof value === "object" && value !== null ? structOf(value) : null;
}
