import { isIP } from "node:net";

/** A request to rehearse, as the bytes that a client would send. */
export interface RequestFacts {
  readonly url: URL;
  readonly method: string;
  /** Path and query as they are sent. */
  readonly target: string;
  /** Request line and fields, latin1. */
  readonly head: string;
  readonly body: Buffer;
  /** The server name of the TLS handshake; undefined = plaintext. */
  readonly serverName: string | undefined;
  readonly source: { readonly address: string; readonly port: number };
}

/** What is wrong with a request and how to write it. */
export class BadFacts extends Error {
  readonly hint: string;
  constructor(message: string, hint: string) {
    super(message);
    this.hint = hint;
  }
}

/** A request as programs write it. */
export interface RequestData {
  /** By default GET, or POST with a body. */
  readonly method?: string;
  readonly url: string;
  /** Fields that occur more than once have a list of values. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string;
  /** The client's address; by default 127.0.0.1. */
  readonly source?: string;
}

const FIELDS: Readonly<Record<keyof RequestData, (value: unknown) => boolean>> = {
  method: isText,
  url: isText,
  headers: (value) => isObject(value) && Object.values(value).every((each) => isText(each) || isTexts(each)),
  body: isText,
  source: isText,
};
const EXAMPLE =
  'write {"url": "http://shop.example/cart", "method": "POST", "headers": {"x-canary": "yes"}, "body": "…"}';

/** Checks that a value of JSON is a request. Throws BadFacts. `at` begins messages: `request` gives `request.url: …`. */
export function readRequest(value: unknown, at = "request"): RequestData {
  if (!isObject(value)) throw new BadFacts(`${at}: expected an object`, EXAMPLE);
  for (const [name, field] of Object.entries(value)) {
    if (!isField(name)) throw new BadFacts(`${at}.${name}: unknown field`, `write ${Object.keys(FIELDS).join(", ")}`);
    if (!FIELDS[name](field)) throw new BadFacts(`${at}.${name}: not what a request has there`, EXAMPLE);
  }
  if (!("url" in value)) throw new BadFacts(`${at}.url: missing`, EXAMPLE);
  return value as unknown as RequestData;
}

function isField(name: string): name is keyof RequestData {
  return Object.hasOwn(FIELDS, name);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The bytes that a client would send. Throws BadFacts. */
export function factsOf({
  method,
  url: text,
  headers = {},
  body = "",
  source = "127.0.0.1",
}: RequestData): RequestFacts {
  if (isIP(source) === 0) throw new BadFacts(`${source} is not an IP address`, "write one such as 192.0.2.7");
  const fields = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value) => [name, value] as const),
  );
  for (const [name, value] of fields)
    if (name === "" || /[\r\n:]/.test(name) || /[\r\n]/.test(value))
      throw new BadFacts(
        `${JSON.stringify(`${name}: ${value}`)} is not a header field`,
        "write it without line breaks",
      );
  const url = urlOf(text);
  const verb = method ?? (body === "" ? "GET" : "POST");
  if (!/^[\x21-\x7e]+$/.test(verb))
    throw new BadFacts(`${JSON.stringify(verb)} is not a method`, "write one such as POST");
  const known = url.username === "" ? [] : [["Authorization", credentials(url)] as const];
  return build(verb, url, targetOf(text), [...fields, ...known], body, source);
}

function build(
  method: string,
  url: URL,
  target: string,
  fields: readonly (readonly [string, string])[],
  body: string,
  source: string,
): RequestFacts {
  const has = (wanted: string): boolean => fields.some(([name]) => name.toLowerCase() === wanted);
  const bytes = Buffer.from(body);
  const lines = [
    `${method} ${target} HTTP/1.1`,
    ...(has("host") ? [] : [`Host: ${url.host}`]),
    ...fields.map(([name, value]) => `${name}: ${Buffer.from(value).toString("latin1")}`),
    ...(bytes.length > 0 && !has("content-type") ? ["Content-Type: application/x-www-form-urlencoded"] : []),
    ...(bytes.length > 0 && !has("content-length") ? [`Content-Length: ${bytes.length}`] : []),
  ];
  const serverName = url.protocol === "https:" ? url.hostname.toLowerCase() : undefined;
  return {
    url,
    method,
    target,
    head: `${lines.join("\r\n")}\r\n\r\n`,
    body: bytes,
    serverName,
    source: { address: source, port: 50_000 },
  };
}

function credentials({ username, password }: URL): string {
  return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")}`;
}

/** Path and query of a URL, not normalized: a gateway may reject what a browser would mend. */
function targetOf(text: string): string {
  const [, rest = ""] = /^(?:[a-z][a-z0-9+.-]*:\/\/)?[^/?#]*([^#]*)/i.exec(text) ?? [];
  if (/[^\x21-\x7e]/.test(rest))
    throw new BadFacts(
      `${JSON.stringify(text)} has a character that a URL cannot have`,
      "encode it, such as a space as %20",
    );
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** Without a scheme it is http, as curl assumes. */
function urlOf(text: string): URL {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  if (url === null || url.hostname === "")
    throw new BadFacts(`${JSON.stringify(text)} is not a URL`, "write a URL such as http://shop.example/cart");
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new BadFacts(
      `the scheme ${url.protocol.slice(0, -1)} cannot be explained`,
      "write a URL that begins with http:// or https://",
    );
  return url;
}
