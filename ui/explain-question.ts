/** The question of the what-if form: in its fields, in the address of the page, and as the gateway takes it. */
import type { ListenerState } from "../src/admin/plane/answers.ts";
import type { Fields } from "../src/base/fields.ts";
import { REDACTED, redactTarget, redactUrls, SECRET_PARAMETERS } from "../src/base/redaction.ts";
import { SENSITIVE_HEADERS, SensitiveNames } from "../src/base/sensitive-names.ts";
import { CONDITION } from "../src/rehearsal/condition.ts";
import type { Explanation } from "../src/rehearsal/explanation.ts";
import type { WrittenRequest } from "../src/rehearsal/facts.ts";
import { hashOf } from "./place.ts";

/** A header field of a request, as it is written. */
export type HeaderRow = readonly [name: string, value: string];

/** What the form has; empty: not given. */
export interface Draft {
  readonly method: string;
  readonly url: string;
  /** Rows in which nothing is written are no fields. */
  readonly headers: readonly HeaderRow[];
  readonly body: string;
  /** The client's address. */
  readonly source: string;
  readonly version: string;
  /** The client's certificate with its key, PEM. Never in the address. */
  readonly certificate: string;
  /** Values by name. A condition is not for the gateway, which tries both results: other outcomes are hidden. */
  readonly assume: ReadonlyMap<string, string>;
}

export const EMPTY_DRAFT: Draft = {
  method: "",
  url: "",
  headers: [],
  body: "",
  source: "",
  version: "",
  certificate: "",
  assume: new Map(),
};

/** Fields of a draft that are a parameter of the address with the same name. */
const WORDS = ["method", "url", "body", "source", "version"] as const;

const secretHeaders = new SensitiveNames(SENSITIVE_HEADERS);

/** The draft that an address has. */
export function draftOf(query: URLSearchParams): Draft {
  const words = Object.fromEntries(WORDS.map((name) => [name, query.get(name) ?? ""]));
  const assume = new Map(query.getAll("assume").map(splitAssumption));
  return { ...EMPTY_DRAFT, ...words, headers: query.getAll("header").map(headerOf), assume };
}

/** The address of a draft, without secrets, and the names of what was left out of it. */
export function addressOf(draft: Draft): { readonly hash: string; readonly leftOut: readonly string[] } {
  const { words, leftOut } = addressWords(draft);
  return { hash: hashOf("/explain", words), leftOut };
}

/** The parameters of an address that has a draft, as `addressOf`. */
export function addressWords(draft: Draft): {
  readonly words: readonly (readonly [name: string, value: string])[];
  readonly leftOut: readonly string[];
} {
  const leftOut: string[] = [];
  const url: string = redactTarget(draft.url, SECRET_PARAMETERS);
  if (url !== draft.url) leftOut.push("a part of the URL");
  if (draft.certificate !== "") leftOut.push("the certificate");
  const hidesBody = hasSecret(draft.body);
  if (hidesBody) leftOut.push("the body");
  const headers = draft.headers.filter(isWritten).map(([name, value]) => {
    const shown = secretHeaders.has(name.trim().toLowerCase()) ? REDACTED : redactUrls(value);
    if (value.includes(REDACTED) || shown === value) return `${name}: ${value}`;
    leftOut.push(name.trim());
    return `${name}: ${shown}`;
  });
  const assume = [...draft.assume].filter(([name, value]) => {
    if (!hasSecret(value)) return true;
    leftOut.push(`the value of ${name}`);
    return false;
  });
  const words = { ...draft, url, body: hidesBody ? "" : draft.body };
  const all = [
    ...WORDS.map((name) => [name, words[name]] as const),
    ...headers.map((line) => ["header", line] as const),
    ...assume.map(([name, value]) => ["assume", `${name}=${value}`] as const),
  ];
  return { words: all, leftOut };
}

/** Whether a text has a parameter or property whose name is that of a secret: it may be a form or JSON. */
function hasSecret(text: string): boolean {
  const asParameter = `/?in=${encodeURIComponent(`?${text}`)}`;
  return redactTarget(asParameter, SECRET_PARAMETERS) !== asParameter;
}

/** A draft without assumptions: which request it is about. */
export function requestKey(draft: Draft): string {
  return JSON.stringify(questionOf({ ...draft, assume: EMPTY_DRAFT.assume }));
}

/** The body of `POST /explain`. */
export function questionOf({ method, url, headers, body, source, version, certificate, assume }: Draft): {
  readonly request: { readonly url: string };
  readonly assume: Fields;
} {
  const given = { method, body, source, version, certificate };
  const request = {
    url,
    headers: headers.filter(isWritten).map(([name, value]) => [name.trim(), value.trim()]),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== "")),
  };
  return { request, assume: Object.fromEntries([...assume].filter(([name]) => !name.startsWith(CONDITION))) };
}

/** The draft with the facts of a request. */
export function draftOfRequest({ headers, ...facts }: Omit<WrittenRequest, "body">): Draft {
  const { url, method = "", source = "", version = "", certificate = "" } = facts;
  return { ...EMPTY_DRAFT, url, method, headers, source, version, certificate };
}

/** The draft with a question of the gateway. */
export function draftOfQuestion({ request, assume = {} }: NonNullable<Explanation["question"]>): Draft {
  const assumed = Object.entries(assume).map(([name, value]) => [name, valueText(value)] as const);
  return { ...draftOfRequest(request), body: request.body, assume: new Map(assumed) };
}

/** A value as an assumption is written. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The assumptions in a text, one per line. */
export function assumptionsIn(text: string): ReadonlyMap<string, string> {
  return new Map(
    linesOf(text).map((line) => {
      const [name, value] = splitAssumption(line);
      return [name.trim(), value];
    }),
  );
}

/** The header fields in a text, one on each line, as `name: value`. */
export function headersIn(text: string): HeaderRow[] {
  return linesOf(text).map(headerOf);
}

function headerOf(line: string): HeaderRow {
  const at = line.indexOf(":");
  return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

/** Whether something is written in a row. */
export function isWritten([name, value]: HeaderRow): boolean {
  return name.trim() !== "" || value.trim() !== "";
}

/** The URL at a listener: with its scheme, port and host, unless the host fits already. Path and query stay. undefined: no client reaches it. */
export function urlAt({ protocol, hostname, address }: ListenerState, url: string): string | undefined {
  if (address === null) return undefined;
  const [, before = "", rest = ""] = /^(?:[a-z][a-z0-9+.-]*:\/\/)?([^/?#]*)(.*)$/is.exec(url) ?? [];
  const host = before.replace(/:\d*$/, "");
  const suffix = hostname.startsWith("*") ? hostname.slice(1) : undefined;
  const own = suffix === undefined ? hostname : suffix === "" ? "localhost" : `www${suffix}`;
  const fits = suffix !== undefined && host !== "" && host.toLowerCase().endsWith(suffix);
  const target = protocol.startsWith("HTTP") ? rest || "/" : "";
  return `${protocol.toLowerCase()}://${fits ? host : own}:${address.slice(address.lastIndexOf(":") + 1)}${target}`;
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** `NAME=VALUE`. A condition may have `=` in its text, but not in its result. */
function splitAssumption(text: string): [name: string, value: string] {
  const at = text.startsWith(CONDITION) ? text.lastIndexOf("=") : text.indexOf("=");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
