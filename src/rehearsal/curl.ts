/** Requests as people write them for curl: `[METHOD] URL` with some of its options. */
import { BadFacts, credentials, type WrittenRequest } from "./facts.ts";
import { pemOf } from "./named-file.ts";
import type { KnownParts } from "./question.ts";

const USAGE = "write it as for curl: [METHOD] URL [-X METHOD] [-H 'name: value'] [-d BODY]";

/** Options with a value, by their long names too. */
const OPTIONS: Readonly<
  Record<string, "method" | "header" | "data" | "agent" | "user" | "query" | "file" | "ignored">
> = {
  "-X": "method",
  "--request": "method",
  "-H": "header",
  "--header": "header",
  "-d": "data",
  "--data": "data",
  "--data-raw": "data",
  "-A": "agent",
  "--user-agent": "agent",
  "-u": "user",
  "--user": "user",
  "--url-query": "query",
  // PEM, in one file or in two.
  "-E": "file",
  "--cert": "file",
  "--key": "file",
  // Where curl connects to and what it does with the response: the gateway gets the same request.
  "--resolve": "ignored",
  "--connect-to": "ignored",
  "-o": "ignored",
  "--output": "ignored",
  "-m": "ignored",
  "--max-time": "ignored",
};
/** Options without a value that change nothing about the request; nor does `--http2`: the gateway does not upgrade plaintext. */
const SWITCHES = /^(-[sSvikgf]+|--(silent|show-error|verbose|include|insecure|globoff|fail|path-as-is|http2))$/;
const VERSIONS: Readonly<Record<string, WrittenRequest["version"]>> = {
  "--http1.1": "1.1",
  "--http2-prior-knowledge": "2",
};

/** Reads `[METHOD] URL` and options of curl, and the files that they name. `source`: the client's address. Throws BadFacts. */
export function requestOf(words: readonly string[], source?: string): WrittenRequest {
  const { positional, query, method, ...request } = read(words);
  const url = positional.pop();
  if (url === undefined) throw new BadFacts("no URL", USAGE);
  if (positional.length > 1) throw new BadFacts(`what is ${positional[1]}?`, USAGE);
  return { ...request, url: withQuery(url, query), method: positional[0] ?? method, source };
}

/** Whether the words have a URL. Throws BadFacts. */
export function hasUrl(words: readonly string[]): boolean {
  return read(words).positional.length > 0;
}

/** Reads options of curl for a request of which the rest is known. Throws BadFacts. */
export function knownPartsOf(words: readonly string[], source?: string): KnownParts {
  const { positional, method, version, query, headers, body, certificate } = read(words);
  if (positional.length > 0 || method !== undefined || version !== undefined)
    throw new BadFacts("the record has method, URL and version", "write what it does not hold: -H, -d, --url-query");
  return {
    headers,
    body,
    query,
    ...(certificate !== undefined && { certificate }),
    ...(source !== undefined && { source }),
  };
}

/** Words of a request, of which the last ones without a dash are method and URL. */
function read(words: readonly string[]) {
  const fields: [name: string, value: string][] = [];
  const positional: string[] = [];
  let method: string | undefined;
  let body = "";
  let query = "";
  let version: WrittenRequest["version"];
  let certificate: string | undefined;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string;
    if (!word.startsWith("-") || word === "-") {
      positional.push(word);
      continue;
    }
    if (SWITCHES.test(word)) continue;
    if (word in VERSIONS) {
      version = VERSIONS[word];
      continue;
    }
    const option = OPTIONS[word];
    const value = words[++i];
    if (option === undefined) throw new BadFacts(`unknown option ${word} of the request`, USAGE);
    if (value === undefined) throw new BadFacts(`${word} needs a value`, USAGE);
    if (option === "method") method = value;
    else if (option === "query") query += `${query === "" ? "" : "&"}${encodedParameter(value)}`;
    else if (option === "data") body += body === "" ? value : `&${value}`;
    else if (option === "agent") fields.push(["User-Agent", value]);
    else if (option === "user") fields.push(credentials(value));
    else if (option === "header") fields.push(fieldOf(value));
    else if (option === "file") certificate = `${certificate ?? ""}${pemOf(value, ".", { request: "certificate" })}\n`;
  }
  return { positional, method, headers: fields, body, query, version, certificate };
}

/** `name=value`, of which curl encodes the value. */
function encodedParameter(text: string): string {
  const mark = text.indexOf("=");
  return mark < 0 ? encodeURIComponent(text) : `${text.slice(0, mark)}=${encodeURIComponent(text.slice(mark + 1))}`;
}

function withQuery(url: string, query: string): string {
  if (query === "") return url;
  const [, before = "", fragment = ""] = /^([^#]*)(.*)$/s.exec(url) ?? [];
  return `${before}${before.includes("?") ? "&" : "?"}${query}${fragment}`;
}

function fieldOf(text: string): [name: string, value: string] {
  const colon = text.indexOf(":");
  if (colon < 1 || /[\r\n]/.test(text))
    throw new BadFacts(`-H ${JSON.stringify(text)} is not a header field`, "write -H 'name: value'");
  return [text.slice(0, colon), text.slice(colon + 1).trim()];
}
