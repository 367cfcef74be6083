import { isObject } from "../base/fields.ts";

/** Characters of `details`; the event's `data` has the rest. */
const MAX_TEXT = 500;

/**
 * What a policy did, as one line: `valid=false reason="no bearer token found"`, `path.prefix=/`. Lists, and texts with spaces,
 * quotes or equals signs, are written as JSON.
 */
export function detailsText(data: unknown): string {
  const text = typeof data === "string" ? data : pairs("", data).join(" ");
  return clipped(text);
}

/** A text of at most 500 characters, with a mark if it is cut. */
export function clipped(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`;
}

function pairs(path: string, value: unknown): string[] {
  if (value === undefined) return [];
  if (isObject(value)) {
    const prefix = path === "" ? "" : `${path}.`;
    return Object.entries(value).flatMap(([name, each]) => pairs(`${prefix}${name}`, each));
  }
  const shown = typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  return [path === "" ? shown : `${path}=${shown}`];
}
