/** The extension `strings`. */
import { fn, method, type Overload } from "../environment/overload.ts";
import { DYN, INT, list, STRING } from "../environment/types.ts";
import { adopt } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { type Failure, fail } from "../values/failure.ts";
import type { CelValue } from "../values/types.ts";
import { formatText } from "./format.ts";
import { find, splitAt } from "./search.ts";

/** Steps for each piece of text that is created, and for each change inside one. */
const PER_PART = 16;
const PER_CHANGE = 32;
/** Steps for each character of a prefix or suffix that is compared. */
const PER_COMPARED = 4;

/** Positions count Unicode characters. ASCII text, which is most, needs no splitting. */
function characters(text: string): readonly string[] | string {
  charge(text.length);
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) < 0xd800) continue;
    charge(text.length * PER_PART);
    return [...text];
  }
  return text;
}

function join(parts: readonly string[] | string): string {
  return typeof parts === "string" ? parts : parts.join("");
}

function outside(index: bigint): Failure {
  return fail(`index ${index} is out of range`);
}

function charAt(text: string, index: bigint): CelValue | Failure {
  const parts = characters(text);
  if (index < 0n || index > BigInt(parts.length)) return outside(index);
  return parts[Number(index)] ?? "";
}

function substring(text: string, from: bigint, to?: bigint): CelValue | Failure {
  const parts = characters(text);
  const end = to ?? BigInt(parts.length);
  if (from < 0n || from > BigInt(parts.length)) return outside(from);
  if (end < from || end > BigInt(parts.length)) return outside(end);
  return join(parts.slice(Number(from), Number(end)));
}

function indexOf(text: string, part: string, from = 0n): CelValue | Failure {
  const parts = characters(text);
  if (from < 0n || from > BigInt(parts.length)) return outside(from);
  const start = join(parts.slice(0, Number(from))).length;
  const found = find(text, part, start);
  return found === -1 ? -1n : BigInt(characters(text.slice(0, found)).length);
}

function lastIndexOf(text: string, part: string, from?: bigint): CelValue | Failure {
  const parts = characters(text);
  if (from !== undefined && (from < 0n || from > BigInt(parts.length))) return outside(from);
  const start = from === undefined ? text.length : join(parts.slice(0, Number(from))).length;
  // V8 compares the part again at each position.
  charge(text.length * Math.ceil(part.length / PER_COMPARED));
  const found = text.lastIndexOf(part, start);
  return found === -1 ? -1n : BigInt(characters(text.slice(0, found)).length);
}

function replace(text: string, old: string, replacement: string, limit = -1n): CelValue {
  const most = limit < 0n ? Number.POSITIVE_INFINITY : Number(limit) + 1;
  if (old !== "") return splitAt(text, old, most, PER_PART + replacement.length).join(replacement);
  const parts = ["", ...characters(text), ""];
  charge(parts.length * (replacement.length + PER_PART));
  return parts.slice(0, most).join(replacement) + parts.slice(most).join("");
}

function split(text: string, separator: string, limit = -1n): CelValue {
  if (limit === 0n) return [];
  const most = limit < 0n ? Number.POSITIVE_INFINITY : Number(limit);
  if (separator !== "") return splitAt(text, separator, most, PER_PART);
  charge(text.length * PER_PART);
  const parts = [...text];
  if (parts.length <= most) return parts;
  const count = most - 1;
  return [...parts.slice(0, count), parts.slice(count).join(separator)];
}

/** The strings of a list joined; fails when an element is not a string. */
function joinList(items: readonly CelValue[], separator = ""): CelValue | Failure {
  charge(items.length * PER_PART);
  let length = 0;
  for (const item of items) {
    const value = adopt(item);
    if (typeof value !== "string") return fail("join needs a list of strings");
    length += value.length + separator.length;
  }
  charge(length);
  return items.join(separator);
}

function quote(text: string): CelValue {
  charge(text.length * PER_CHANGE);
  const escapes: Readonly<Record<string, string>> = {
    "\x07": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
  };
  return `"${text.toWellFormed().replace(/[\p{Cc}\\"]/gu, (character) => escapes[character] ?? character)}"`;
}

const ascii = (pattern: RegExp, change: (letters: string) => string) => (text: string) => {
  charge(text.length);
  if (IS_ASCII.test(text)) return change(text);
  charge(text.length * PER_CHANGE);
  return text.replace(pattern, change);
};

const IS_ASCII = /^\p{ASCII}*$/u;

/** White space as Unicode has it (Go's strings.TrimSpace). */
const SPACES = "[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const TRIM = new RegExp(`^${SPACES}`);
const SPACE = new RegExp(`^${SPACES}$`);

function trim(text: string): CelValue {
  charge(text.length);
  const start = TRIM.exec(text)?.[0].length ?? 0;
  let end = text.length;
  while (end > start && SPACE.test(text[end - 1] ?? "")) end--;
  return text.slice(start, end);
}

/** The extension `strings`. */
export const STRINGS: readonly Overload[] = [
  method("charAt", [STRING, INT], STRING, charAt),
  method("substring", [STRING, INT], STRING, substring),
  method("substring", [STRING, INT, INT], STRING, substring),
  method("indexOf", [STRING, STRING], INT, indexOf),
  method("indexOf", [STRING, STRING, INT], INT, indexOf),
  method("lastIndexOf", [STRING, STRING], INT, lastIndexOf),
  method("lastIndexOf", [STRING, STRING, INT], INT, lastIndexOf),
  method(
    "lowerAscii",
    [STRING],
    STRING,
    ascii(/[A-Z]+/g, (text) => text.toLowerCase()),
  ),
  method(
    "upperAscii",
    [STRING],
    STRING,
    ascii(/[a-z]+/g, (text) => text.toUpperCase()),
  ),
  method("replace", [STRING, STRING, STRING], STRING, replace),
  method("replace", [STRING, STRING, STRING, INT], STRING, replace),
  method("split", [STRING, STRING], list(STRING), split),
  method("split", [STRING, STRING, INT], list(STRING), split),
  method("trim", [STRING], STRING, trim),
  method("stripPrefix", [STRING, STRING], STRING, (text: string, prefix: string) => {
    charge(prefix.length * PER_COMPARED);
    return text.startsWith(prefix) ? text.slice(prefix.length) : text;
  }),
  method("stripSuffix", [STRING, STRING], STRING, (text: string, suffix: string) => {
    charge(suffix.length * PER_COMPARED);
    return text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text;
  }),
  method("reverse", [STRING], STRING, (text: string) => {
    charge(text.length * PER_PART);
    return [...characters(text)].reverse().join("");
  }),
  method("join", [list(STRING)], STRING, joinList),
  method("join", [list(STRING), STRING], STRING, joinList),
  method("format", [STRING, list(DYN)], STRING, formatText),
  fn("strings.quote", [STRING], STRING, quote),
];
