import { DYN, INT, list, STRING } from "../check/types.ts";
import { charge } from "../evaluate/budget.ts";
import { type Failure, fail } from "../evaluate/failure.ts";
import { adopt } from "../values/access.ts";
import type { CelValue } from "../values/types.ts";
import { formatText } from "./format.ts";
import { fn, method, type Overload } from "./overload.ts";

/** Steps for each piece of a text that is made, and for each change inside of one: about 10 and 50 ns. */
const PER_PART = 8;
const PER_CHANGE = 32;

/** Positions count Unicode characters. ASCII text, which is most, needs no splitting. */
function characters(text: string): readonly string[] | string {
  charge(text.length);
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= 0xd800) return [...text];
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
  const found = text.indexOf(part, start);
  return found === -1 ? -1n : BigInt(characters(text.slice(0, found)).length);
}

function lastIndexOf(text: string, part: string, from?: bigint): CelValue | Failure {
  const parts = characters(text);
  if (from !== undefined && (from < 0n || from > BigInt(parts.length))) return outside(from);
  const start = from === undefined ? text.length : join(parts.slice(0, Number(from))).length;
  const found = text.lastIndexOf(part, start);
  return found === -1 ? -1n : BigInt(characters(text.slice(0, found)).length);
}

function replace(text: string, old: string, replacement: string, limit = -1n): CelValue {
  const parts = old === "" ? ["", ...characters(text), ""] : text.split(old);
  charge(text.length + parts.length * (replacement.length + PER_PART));
  const count = limit < 0n || limit >= BigInt(parts.length) ? parts.length - 1 : Number(limit);
  const head = parts.slice(0, count + 1).join(replacement);
  const tail = parts.slice(count + 1);
  return tail.length === 0 ? head : `${head}${old}${tail.join(old)}`;
}

function split(text: string, separator: string, limit = -1n): CelValue {
  charge(text.length);
  const parts = separator === "" ? [...text] : text.split(separator);
  charge(parts.length * PER_PART);
  if (limit < 0n || BigInt(parts.length) <= limit) return parts;
  if (limit === 0n) return [];
  const count = Number(limit) - 1;
  return [...parts.slice(0, count), parts.slice(count).join(separator)];
}

/** The strings of a list joined; fails when an element is not a string. */
function joinList(items: readonly CelValue[], separator = ""): CelValue | Failure {
  let length = 0;
  for (const item of items) {
    const value = adopt(item);
    if (typeof value !== "string") return fail("join needs a list of strings");
    length += value.length + separator.length;
  }
  charge(length + items.length * PER_PART);
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
  method("stripPrefix", [STRING, STRING], STRING, (text: string, prefix: string) =>
    text.startsWith(prefix) ? text.slice(prefix.length) : text,
  ),
  method("stripSuffix", [STRING, STRING], STRING, (text: string, suffix: string) =>
    text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text,
  ),
  method("reverse", [STRING], STRING, (text: string) => {
    charge(text.length * PER_PART);
    return [...characters(text)].reverse().join("");
  }),
  method("join", [list(STRING)], STRING, joinList),
  method("join", [list(STRING), STRING], STRING, joinList),
  method("format", [STRING, list(DYN)], STRING, formatText),
  fn("strings.quote", [STRING], STRING, quote),
];
