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

/** What is wrong with a request that was written on a command line, and how to write it. */
export class BadFacts extends Error {
  readonly hint: string;
  constructor(message: string, hint: string) {
    super(message);
    this.hint = hint;
  }
}

const USAGE = "write it as for curl: [METHOD] URL [-X METHOD] [-H 'name: value'] [-d BODY]";

/** A request as a user writes it. */
export interface WrittenRequest {
  readonly url: string;
  /** Default GET, with a body POST. */
  readonly method?: string | undefined;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** The client's address; default 127.0.0.1. */
  readonly source?: string | undefined;
}

/** Reads `[METHOD] URL` and some options of curl: `-X`, `-H`, `-d`, `-A`, `-u`. Throws BadFacts. `source`: the client's address. */
export function factsOf(words: readonly string[], source?: string): RequestFacts {
  const fields: [name: string, value: string][] = [];
  const positional: string[] = [];
  let method: string | undefined;
  let body = "";
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string;
    if (!word.startsWith("-") || word === "-") {
      positional.push(word);
      continue;
    }
    const option = OPTIONS[word];
    const value = words[++i];
    if (option === undefined) throw new BadFacts(`unknown option ${word} of the request`, USAGE);
    if (value === undefined) throw new BadFacts(`${word} needs a value`, USAGE);
    if (option === "-X") method = value;
    else if (option === "-d") body += body === "" ? value : `&${value}`;
    else if (option === "-A") fields.push(["User-Agent", value]);
    else if (option === "-u") fields.push(credentials(value));
    else fields.push(fieldOf(value));
  }
  const text = positional.pop();
  if (text === undefined) throw new BadFacts("no URL", USAGE);
  if (positional.length > 1) throw new BadFacts(`what is ${positional[1]}?`, USAGE);
  return factsOfRequest({ url: text, method: positional[0] ?? method, headers: fields, body, source });
}

/** The bytes of a request, with the fields that curl would add. Throws BadFacts. */
export function factsOfRequest(request: WrittenRequest): RequestFacts {
  const { url: text, headers, body, source = "127.0.0.1" } = request;
  if (isIP(source) === 0) throw new BadFacts(`${source} is not an IP address`, "write an address such as 192.0.2.7");
  const url = urlOf(text);
  const method = request.method ?? (body === "" ? "GET" : "POST");
  if (method === "" || /[^\x21-\x7e]/.test(method))
    throw new BadFacts(`${JSON.stringify(method)} is not a method`, USAGE);
  const fields = [...headers];
  if (url.username !== "")
    fields.push(credentials(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`));
  return build(method, url, targetOf(text), fields, body, source);
}

/** Options of curl by their long names too. */
const OPTIONS: Readonly<Record<string, string>> = {
  "-X": "-X",
  "--request": "-X",
  "-H": "-H",
  "--header": "-H",
  "-d": "-d",
  "--data": "-d",
  "-A": "-A",
  "--user-agent": "-A",
  "-u": "-u",
  "--user": "-u",
};

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

function fieldOf(text: string): [name: string, value: string] {
  const colon = text.indexOf(":");
  if (colon < 1 || /[\r\n]/.test(text))
    throw new BadFacts(`-H ${JSON.stringify(text)} is not a header field`, "write -H 'name: value'");
  return [text.slice(0, colon), text.slice(colon + 1).trim()];
}

function credentials(text: string): [name: string, value: string] {
  return ["Authorization", `Basic ${Buffer.from(text).toString("base64")}`];
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
