import { isIP } from "node:net";
import { isObject } from "../base/fields.ts";
import { REDACTED } from "../base/redaction.ts";

/** A request to rehearse, as the bytes that a client would send. */
export interface RequestFacts {
  readonly url: URL;
  readonly method: string;
  /** Path and query as they are sent. */
  readonly target: string;
  /** Request line and fields as in HTTP/1.1, latin1; empty for connections without requests. */
  readonly head: string;
  /** Without its framing. */
  readonly body: Buffer;
  /** The server name of the TLS handshake, empty for an address; undefined = plaintext. */
  readonly serverName: string | undefined;
  readonly version: WrittenRequest["version"];
  readonly certificate: string | undefined;
  readonly source: { readonly address: string; readonly port: number };
  /** Set if only a part of the request is known: what it lacks is not known, instead of absent. */
  readonly partly?: PartlyKnown;
}

/** What is known of a request that is over, besides its facts. */
export interface PartlyKnown {
  readonly time: Date;
  /** The address of the client is the one in the facts. */
  readonly source: boolean;
  /** The certificate of the client is known too. */
  readonly certificate: boolean;
}

/** What is wrong with a request, and how to write it. */
export class BadFacts extends Error {
  readonly hint: string;
  readonly about: BadPart | undefined;
  constructor(message: string, hint: string, about?: BadPart) {
    super(message);
    this.hint = hint;
    this.about = about;
  }
}

/** The field of the request, or the assumption, that is wrong. */
export type BadPart =
  /** `header`: which of the header fields, from 0 on. */
  | { readonly request: string; readonly header?: number }
  /** `ways`: what can be assumed instead; empty if nothing depends on the assumption, whose `value` follows. Absent: the name is wrong. */
  | { readonly assume: string; readonly ways?: readonly Way[]; readonly value?: string };

/** An assumption as it is written. */
export type Way = readonly [name: string, value: string];

/** A request as a user writes it. */
export interface WrittenRequest {
  readonly url: string;
  /** Default GET, with a body POST. */
  readonly method?: string | undefined;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** The client's address; default 127.0.0.1. */
  readonly source?: string | undefined;
  /** Of HTTP. Default: 1.1 in plaintext, and in TLS what the gateway chooses of both. */
  readonly version?: "1.1" | "2" | undefined;
  /** The client's certificate with its private key, PEM; default none. */
  readonly certificate?: string | undefined;
}

const FIELDS: Readonly<Record<keyof WrittenRequest, (value: unknown) => boolean>> = {
  url: isText,
  method: isText,
  headers: (value) => pairsOf(value).every((pair) => pair.length === 2 && pair.every(isText)),
  body: isText,
  source: isText,
  version: (value) => value === "1.1" || value === "2",
  certificate: isText,
};
const EXAMPLE =
  'write {"url": "http://shop.example/cart", "method": "POST", "headers": {"x-canary": "yes"}, "body": "…"}';

/** A request as JSON has it: `headers` is an object, or a list of pairs. Throws BadFacts; `at` begins its messages. */
export function readRequest(value: unknown, at = "request"): WrittenRequest {
  if (!isObject(value)) throw new BadFacts(`${at}: expected an object`, EXAMPLE);
  for (const [name, field] of Object.entries(value)) {
    if (!isField(name)) throw new BadFacts(`${at}.${name}: unknown field`, `write ${Object.keys(FIELDS).join(", ")}`);
    if (!FIELDS[name](field)) throw new BadFacts(`${at}.${name}: not what a request has there`, EXAMPLE);
  }
  if (!("url" in value)) throw new BadFacts(`${at}.url: missing`, EXAMPLE);
  const { headers = {}, body = "", ...others } = value as object as WrittenRequest;
  return { ...others, headers: pairsOf(headers) as [string, string][], body };
}

function pairsOf(value: unknown): unknown[][] {
  if (Array.isArray(value)) return value.map((each) => (Array.isArray(each) ? each : []));
  return isObject(value) ? Object.entries(value) : [[]];
}

function isField(name: string): name is keyof WrittenRequest {
  return Object.hasOwn(FIELDS, name);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** The bytes of a request, with the fields that curl would add. Throws BadFacts. */
export function factsOfRequest(request: WrittenRequest): RequestFacts {
  const { url: text, headers, body } = request;
  const url = urlOf(text);
  const client = clientOf(request, url);
  if (CONNECTIONS.has(url.protocol)) return connectionFacts(request, url, client);
  const method = request.method ?? (body === "" ? "GET" : "POST");
  if (method === "" || /[^\x21-\x7e]/.test(method))
    throw new BadFacts(`${JSON.stringify(method)} is not a method`, "write one such as POST", { request: "method" });
  for (const [index, [name, value]] of headers.entries())
    if (!/^[^\r\n:]+$/.test(name) || /[\r\n]/.test(value))
      throw new BadFacts(
        `${JSON.stringify(`${name}: ${value}`)} is not a header field`,
        "write a name and a value of one line",
        { request: "headers", header: index },
      );
  const fields = [...headers];
  if (url.username !== "")
    fields.push(credentials(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`));
  return build(method, url, targetOf(text), fields, body, client);
}

type Client = Pick<RequestFacts, "serverName" | "version" | "certificate" | "source">;

function clientOf({ source = "127.0.0.1", version, certificate }: WrittenRequest, url: URL): Client {
  if (isIP(source) === 0)
    throw new BadFacts(`${source} is not an IP address`, "write an address such as 192.0.2.7", { request: "source" });
  const isTls = url.protocol === "https:" || url.protocol === "tls:";
  if (certificate !== undefined && !isTls)
    throw new BadFacts("a client without TLS has no certificate", "write a URL that begins with https:// or tls://", {
      request: "certificate",
    });
  if (certificate !== undefined && !/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(certificate))
    throw new BadFacts(
      "the client's certificate has no private key",
      "add its key, or assume clientCertificate, which needs none",
      { request: "certificate" },
    );
  // A name that clients ask for is not an address (RFC 6066, section 3).
  const name = isIP(url.hostname.replace(/^\[|\]$/g, "")) === 0 ? url.hostname.toLowerCase() : "";
  return { serverName: isTls ? name : undefined, version, certificate, source: { address: source, port: 50_000 } };
}

/** Schemes of connections, and of datagrams, whose bytes the gateway does not read as requests. */
const CONNECTIONS: ReadonlySet<string> = new Set(["tcp:", "tls:", "udp:"]);

/** `tcp://host:port`, `tls://server-name:port` or `udp://host:port`; the body is what the client sends. */
function connectionFacts({ method, headers, body }: WrittenRequest, url: URL, client: Client): RequestFacts {
  const scheme = url.protocol.slice(0, -1);
  if (method !== undefined || headers.length > 0)
    throw new BadFacts(
      `a connection of ${scheme} has neither a method nor header fields`,
      `write ${scheme}://${url.host}, and bytes that the client sends as the body`,
      { request: method === undefined ? "headers" : "method" },
    );
  return { url, method: "", target: "", head: "", body: Buffer.from(body), ...client };
}

function build(
  method: string,
  url: URL,
  target: string,
  fields: readonly (readonly [string, string])[],
  body: string,
  client: Client,
): RequestFacts {
  const has = (wanted: string): boolean => fields.some(([name]) => name.toLowerCase() === wanted);
  const bytes = Buffer.from(body);
  const lines = [
    `${method} ${target} HTTP/1.1`,
    ...(has("host") ? [] : [`Host: ${url.host}`]),
    ...fields.map(([name, value]) => `${name}: ${Buffer.from(value).toString("latin1")}`),
    ...(bytes.length > 0 && !has("content-type") ? ["Content-Type: application/x-www-form-urlencoded"] : []),
    ...(bytes.length > 0 && !has("content-length") && !has("transfer-encoding")
      ? [`Content-Length: ${bytes.length}`]
      : []),
  ];
  return { url, method, target, head: `${lines.join("\r\n")}\r\n\r\n`, body: bytes, ...client };
}

/** The field for `user:password`. */
export function credentials(text: string): [name: string, value: string] {
  return ["Authorization", `Basic ${Buffer.from(text).toString("base64")}`];
}

/** Path and query of a URL, not normalized: a gateway may reject what a browser would mend. */
function targetOf(text: string): string {
  const [, rest = ""] = /^(?:[a-z][a-z0-9+.-]*:\/\/)?[^/?#]*([^#]*)/i.exec(text) ?? [];
  if (/[^\x21-\x7e]/.test(rest))
    throw new BadFacts(
      `${JSON.stringify(text)} has a character that a URL cannot have`,
      "encode it, such as a space as %20",
      { request: "url" },
    );
  // Copied from a log or trace, this has characters that no client could send.
  const sent = rest.replaceAll(REDACTED, encodeURIComponent(REDACTED));
  return sent.startsWith("/") ? sent : `/${sent}`;
}

/** Without a scheme it is http, as curl assumes. */
function urlOf(text: string): URL {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  if (url === null || url.hostname === "")
    throw new BadFacts(`${JSON.stringify(text)} is not a URL`, "write a URL such as http://shop.example/cart", {
      request: "url",
    });
  if (url.protocol !== "http:" && url.protocol !== "https:" && !CONNECTIONS.has(url.protocol))
    throw new BadFacts(
      `the scheme ${url.protocol.slice(0, -1)} cannot be explained`,
      "write a URL that begins with http://, https://, tcp://, tls:// or udp://",
      { request: "url" },
    );
  return url;
}
