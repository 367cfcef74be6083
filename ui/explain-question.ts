/** The question of the what-if form: in its fields, in the address of the page, and as the gateway takes it. */
import { REDACTED, redactTarget, SECRET_PARAMETERS } from "../src/base/redaction.ts";
import { SENSITIVE_HEADERS, SensitiveNames } from "../src/base/sensitive-names.ts";
import type { RequestRecord } from "../src/recorder/records.ts";
import { urlToSend } from "./curl.ts";
import { hashOf } from "./place.ts";

/** What the form has; empty: not given. */
export interface Draft {
  readonly method: string;
  readonly url: string;
  /** A header field on each line, `name: value`. */
  readonly headers: string;
  readonly body: string;
  /** The client's address. */
  readonly source: string;
  readonly version: string;
  /** The client's certificate with its key, PEM. Never in the address. */
  readonly certificate: string;
  /** `NAME=VALUE`, by name. */
  readonly assume: ReadonlyMap<string, string>;
}

export const EMPTY_DRAFT: Draft = {
  method: "",
  url: "",
  headers: "",
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
  const assume = new Map(query.getAll("assume").map(splitAt("=")));
  return { ...EMPTY_DRAFT, ...words, headers: query.getAll("header").join("\n"), assume };
}

/** The address of a draft, without secrets, and the names of what was left out of it. */
export function addressOf(draft: Draft): { readonly hash: string; readonly leftOut: readonly string[] } {
  const leftOut: string[] = [];
  const url: string = redactTarget(draft.url, SECRET_PARAMETERS);
  if (url !== draft.url) leftOut.push("a parameter of the URL");
  if (draft.certificate !== "") leftOut.push("the certificate");
  const headers = linesOf(draft.headers).map((line) => {
    const [name, value] = splitAt(":")(line);
    if (!secretHeaders.has(name.trim().toLowerCase()) || value.includes(REDACTED)) return line;
    leftOut.push(name);
    return `${name}: ${REDACTED}`;
  });
  const query = [
    ...WORDS.map((name) => [name, name === "url" ? url : draft[name]] as const),
    ...headers.map((line) => ["header", line] as const),
    ...[...draft.assume].map(([name, value]) => ["assume", `${name}=${value}`] as const),
  ];
  return { hash: hashOf("/explain", query), leftOut };
}

/** The body of `POST /explain`. */
export function questionOf({ method, url, headers, body, source, version, certificate, assume }: Draft): object {
  const given = { method, body, source, version, certificate };
  const request = {
    url,
    headers: linesOf(headers).map((line) => {
      const [name, value] = splitAt(":")(line);
      return [name.trim(), value.trim()];
    }),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== "")),
  };
  return { request, assume: Object.fromEntries(assume) };
}

/** The place where one can ask what would happen to such a request; undefined for connections and sessions. */
export function whatIfHash(record: RequestRecord): string | undefined {
  const { method } = record;
  const url = urlToSend(record);
  if (method === undefined || url === undefined) return undefined;
  return addressOf({ ...EMPTY_DRAFT, method, url }).hash;
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** What is before and after the first mark; without one, there is nothing after it. */
function splitAt(mark: string): (text: string) => [before: string, after: string] {
  return (text) => {
    const at = text.indexOf(mark);
    return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
  };
}
