/**
 * Reading JSON whose shape another version of the proxy may have decided: whatever is absent or of another type reads as
 * empty, so that a summary shows what it understands instead of failing.
 */
export type Loose = Readonly<Record<string, unknown>>;

export function record(value: unknown): Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The values of an array or of an object keyed by id. */
export function values(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : Object.values(record(value));
}

export function text(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

export function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** The only key of a tagged union such as `{exact: "/x"}` with its value; `undefined` for anything else. */
export function tagged(value: unknown): readonly [string, unknown] | undefined {
  if (typeof value === "string") return [value, null];
  return Object.entries(record(value))[0];
}
