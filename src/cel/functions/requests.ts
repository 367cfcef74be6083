/** The gateway's own functions: header fields, queries, URIs, secrets, random values, failures. */
import { randomUUID } from "node:crypto";
import type { RE2JS } from "re2js";
import { fn, method, type Overload } from "../environment/overload.ts";
import { DOUBLE, DYN, list, map, STRING } from "../environment/types.ts";
import type { AnyMap } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { type Failure, fail, missing } from "../values/failure.ts";
import { type HeaderShape, HeadersView } from "../values/headers.ts";
import { CelSecret, type CelValue } from "../values/types.ts";
import { compilePattern, constantPattern, search } from "./patterns.ts";

const HEADERS = map(STRING, DYN);
const LISTS = map(STRING, list(DYN));

function view(shape: HeaderShape): (headers: AnyMap) => CelValue | Failure {
  return (headers) =>
    headers instanceof HeadersView ? headers.as(shape) : fail("this needs the headers of a message");
}

function redacted(headers: AnyMap): CelValue | Failure {
  return headers instanceof HeadersView ? headers.redacted() : fail("redacted() needs the headers of a message");
}

/** The text of a secret such as `jwt.rawToken`, which is `<redacted>` wherever it is shown. */
function unredacted(value: CelValue): CelValue | Failure {
  if (value === null) return missing("null has no text");
  return value instanceof CelSecret ? value.text : fail("unredacted() needs a secret, such as jwt.rawToken");
}

function cookie(headers: AnyMap, name: string): CelValue | Failure {
  charge(name.length * 4);
  if (!(headers instanceof HeadersView)) return fail("cookie() needs the headers of a message");
  return headers.cookie(name) ?? missing(`no such cookie: ${name.slice(0, 60)}`);
}

/** Steps for each character of a URI: parsing a query costs 10 to 50 ns. */
const PER_QUERY_CHARACTER = 32;

/** The parts of a URI before, in and after its query. */
function splitQuery(uri: string): readonly [before: string, query: URLSearchParams, after: string] {
  charge(uri.length * PER_QUERY_CHARACTER);
  const hash = uri.indexOf("#");
  const end = hash === -1 ? uri.length : hash;
  const mark = uri.slice(0, end).indexOf("?");
  const start = mark === -1 ? end : mark;
  return [uri.slice(0, start), new URLSearchParams(uri.slice(start, end)), uri.slice(end)];
}

function query(uri: string): CelValue {
  const [, parameters] = splitQuery(uri);
  // The last of a name counts, as for routes (docs/configuration.md#routematch).
  return Object.fromEntries(parameters);
}

/** All values of a parameter. */
function queryValues(uri: string, name: string): CelValue | Failure {
  const [, parameters] = splitQuery(uri);
  charge(name.length);
  const values = parameters.getAll(name);
  return values.length === 0 ? missing(`no such query parameter: ${name.slice(0, 60)}`) : values;
}

function change(uri: string, how: "append" | "set", name: string, value: string): CelValue {
  const [before, parameters, after] = splitQuery(uri);
  charge((name.length + value.length) * PER_QUERY_CHARACTER);
  parameters[how](name, value);
  return `${before}?${parameters}${after}`;
}

/** Steps for each character that a pattern reads and may replace: 100 to 500 ns. */
const PER_CHARACTER = 200;
/** Steps of a match; characters per step that a group, or the text before or after the match, may insert. */
const PER_MATCH = 64;
const GROUP_PER_STEP = 4;

function regexReplace(text: string, pattern: string, replacement: string): CelValue | Failure {
  charge(text.length * PER_CHARACTER);
  const compiled = compilePattern(pattern);
  return "what" in compiled ? compiled : replaceAll(text, compiled, replacement);
}

/** The method that the library's replaceAll calls for each match; its types do not export it. */
interface Replacing {
  appendReplacement(replacement: string): string;
  appendTail(): string;
}

/** Each search starts where the last match ended, and may read all of the remaining text, so the cost does not follow from the number of matches. */
function replaceAll(text: string, pattern: RE2JS, replacement: string): string {
  const groups = replacement.split("$").length - 1;
  const matcher = pattern.matcher(text);
  let result = "";
  while (search(pattern, text, () => matcher.find())) {
    charge(PER_MATCH + replacement.length + Math.ceil((groups * text.length) / GROUP_PER_STEP));
    result += (matcher as unknown as Replacing).appendReplacement(replacement);
  }
  return result + (matcher as unknown as Replacing).appendTail();
}

function replaceConstant(constant: CelValue): ReturnType<NonNullable<Overload["prepare"]>> {
  if (typeof constant !== "string") return undefined;
  const pattern = constantPattern(constant);
  return (text, replacement) => {
    charge((text as string).length * PER_CHARACTER);
    return replaceAll(text as string, pattern, replacement as string);
  };
}

/** The gateway's own functions, for headers, queries and URIs. */
export const REQUESTS: readonly Overload[] = [
  method("redacted", [HEADERS], HEADERS, redacted),
  method("redacted", [LISTS], LISTS, redacted),
  method("join", [HEADERS], HEADERS, view("joined")),
  method("raw", [HEADERS], LISTS, view("raw")),
  method("split", [HEADERS], LISTS, view("split")),
  method("unredacted", [DYN], STRING, unredacted),
  method("cookie", [HEADERS, STRING], DYN, cookie),
  method("query", [STRING], map(STRING, STRING), query),
  method("query", [STRING, STRING], list(STRING), queryValues),
  method("addQuery", [STRING, STRING, STRING], STRING, (uri: string, name: string, value: string) =>
    change(uri, "append", name, value),
  ),
  method("setQuery", [STRING, STRING, STRING], STRING, (uri: string, name: string, value: string) =>
    change(uri, "set", name, value),
  ),
  { ...method("regexReplace", [STRING, STRING, STRING], STRING, regexReplace), prepare: replaceConstant },
  { ...fn("random", [], DOUBLE, Math.random), impure: true },
  { ...fn("uuid", [], STRING, () => randomUUID()), impure: true },
  { ...fn("fail", [STRING], DYN, fail), impure: true },
  { ...fn("fail", [], DYN, () => fail("the expression called fail()")), impure: true },
];
