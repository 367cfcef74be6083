/** The filter of the list of requests: a CEL expression whose conditions can be added and removed one by one. */
import type { RequestRecord } from "../src/recorder/records.ts";

/** What a condition compares, as people call it. */
export type FilterField = keyof typeof FIELDS;

interface FieldOfRecords {
  /** Its variable in expressions over records. */
  readonly variable: string;
  /** Undefined: the request has none, which no condition says. */
  readonly valueIn: (record: RequestRecord) => string | number | undefined;
}

const FIELDS = {
  status: { variable: "response.code", valueIn: ({ status }) => status },
  method: { variable: "request.method", valueIn: ({ method }) => method },
  route: { variable: "route", valueIn: ({ route }) => route },
  backend: { variable: "backend.name", valueIn: ({ backend }) => backend },
  endpoint: { variable: "endpoint", valueIn: ({ endpoint }) => endpoint },
} as const satisfies Readonly<Record<string, FieldOfRecords>>;

/** One of the conditions that must all be true. */
export interface FilterTerm {
  /** CEL; joined by `&&`, the terms are the filter again. */
  readonly text: string;
  /** `status 404` for a condition that the view itself writes, else `text`. */
  readonly name: string;
}

/** The terms of an expression: what its outermost `&&` join, or all of it if something else is outermost. None if it is empty. */
export function termsOf(where: string): readonly FilterTerm[] {
  const parts = conjuncts(where) ?? [`(${where.trim()})`];
  return parts.filter((text) => text !== "").map((text) => ({ text, name: nameOf(text) }));
}

/** The expression with a condition more: that a field has a value. The same if it has that condition already. */
export function withTerm(where: string, field: FilterField, value: string | number): string {
  const term = `${FIELDS[field].variable} == ${literal(value)}`;
  const texts = termsOf(where).map(({ text }) => text);
  return texts.includes(term) ? where : [...texts, term].join(" && ");
}

/** The expression without one of its terms. */
export function withoutTerm(where: string, { text }: FilterTerm): string {
  return termsOf(where)
    .map((term) => term.text)
    .filter((each) => each !== text)
    .join(" && ");
}

/** The expression with the condition that a field is as in a record; undefined if the record has no value. */
export function withValueOf(where: string, field: FilterField, record: RequestRecord): string | undefined {
  const value = FIELDS[field].valueIn(record);
  return value === undefined ? undefined : withTerm(where, field, value);
}

/** A literal in CEL, whose escapes include those of JSON. */
export function literal(value: string | number): string {
  return JSON.stringify(value);
}

/** Text in quotes, in which operators and brackets mean nothing: raw, in three quotes, in one. */
const TEXTS = [
  String.raw`(?<!\w)[bB]?[rR][bB]?(?:"""[\s\S]*?"""|'''[\s\S]*?'''|"[^"\n]*"|'[^'\n]*')`,
  String.raw`"""(?:\\[\s\S]|[\s\S])*?"""|'''(?:\\[\s\S]|[\s\S])*?'''`,
  String.raw`"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`,
];
/** Such a text, a comment, an operator that may be outermost, or any other character. */
const TOKEN = new RegExp([...TEXTS, String.raw`\/\/.*|&&|\|\||\.\?|[\s\S]`].join("|"), "g");

/** The texts that the outermost `&&` join; undefined if something else is outermost, or the text cannot be taken apart. */
function conjuncts(where: string): string[] | undefined {
  const parts = [""];
  let depth = 0;
  for (const [token] of where.matchAll(TOKEN)) {
    if (token.startsWith("//")) continue;
    if ("([{".includes(token)) depth++;
    if (")]}".includes(token)) depth--;
    const isOutermost = depth === 0;
    if (depth < 0 || token === '"' || token === "'") return undefined;
    if (isOutermost && (token === "||" || token === "?")) return undefined;
    if (isOutermost && token === "&&") parts.push("");
    else parts.push(`${parts.pop()}${token}`);
  }
  return depth === 0 ? parts.map((part) => part.trim()) : undefined;
}

/** A condition that the view itself writes, in words: `route shop/admin`. */
function nameOf(text: string): string {
  for (const [name, { variable }] of Object.entries(FIELDS)) {
    if (!text.startsWith(`${variable} == `)) continue;
    const value = constantIn(text.slice(variable.length + " == ".length));
    if (value !== undefined) return `${name} ${value}`;
  }
  return text;
}

function constantIn(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  } catch {
    return undefined;
  }
}
