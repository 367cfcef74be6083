/** A traced request as a command line that sends it again. */
import { REDACTED } from "../../base/redaction.ts";
import { type RequestMessage, receivedRow, requestAt } from "../exchange.ts";
import { outcomeLine, outcomeOf } from "../outcome.ts";
import type { Row } from "../rows.ts";
import { bodyOf } from "./captured-body.ts";

/** Largest body in an argument, in bytes; Linux limits an argument to 128 KiB. */
const MAX_ARGUMENT = 32 * 1024;
/** Fields that curl computes itself. */
const COMPUTED = new Set(["host", "content-length"]);
/** The name of a field (RFC 9110 5.6.2). */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
/** Fields that curl adds unless they are named. */
const ADDED = ["accept", "user-agent"];

/**
 * The command for bash or zsh, with comments; undefined if the trace has no request that curl can send. Redacted values become
 * variables `SECRET_…`; the shell refuses to run the command unless they are set.
 */
export function curlCommand(rows: readonly Row[]): string | undefined {
  const row = receivedRow(rows);
  if (row === undefined) return undefined;
  const request = requestAt(row);
  if (!/^https?:\/\//i.test(request.uri)) return undefined;
  const body = bodyOf(rows, "final request");
  const isText = body !== undefined && isArgument(body.bytes);
  const variables = new Set<string>();
  const quote: Quote = (text, name) => quoted(text, name, variables);
  const args = [
    ...methodArgs(request.method, body !== undefined, quote),
    ...(VERSIONS[request.version]?.(request.uri) ?? []),
    ...connectionArgs(request),
    ...headerArgs(request, body !== undefined, quote),
    ...(body === undefined ? [] : [isText ? `--data-raw ${quote(latin1(body.bytes), "body")}` : "--data-binary @-"]),
    `--url ${quote(request.uri, "url")}`,
  ];
  const command = `curl ${args.join(" \\\n  ")}`;
  const comments = [
    outcomeLine(outcomeOf(rows)),
    variables.size > 0 ? `Redacted in the trace: set ${[...variables].join(", ")} before you run this.` : "",
    body !== undefined ? "The body is the one that was sent to the backend." : "",
    body?.truncated === true ? `Only the first ${body.bytes.length} bytes of the body are in the trace.` : "",
    request.destination === "" || isLoopback(request.destination)
      ? ""
      : `The client connected to ${request.destination}; to send the request there, add --connect-to ::${request.destination}`,
  ];
  const head = comments.filter(Boolean).map((text) => `# ${text.replace(/[\p{Cc}\s]+/gu, " ")}\n`);
  if (body === undefined || isText) return `${head.join("")}${command}\n`;
  const encoded = body.base64.replace(/.{76}/g, "$&\n");
  return `${head.join("")}base64 -d <<'END' | ${command}\n${encoded}\nEND\n`;
}

function methodArgs(method: string, hasBody: boolean, quote: Quote): string[] {
  if (method === "HEAD" && !hasBody) return ["--head"];
  return ["--include", ...(method === (hasBody ? "POST" : "GET") ? [] : [`--request ${quote(method, "method")}`])];
}

const VERSIONS: Readonly<Record<string, (uri: string) => string[]>> = {
  "HTTP/1.0": () => ["--http1.0"],
  "HTTP/2": (uri) => [uri.startsWith("https:") ? "--http2" : "--http2-prior-knowledge"],
};

function connectionArgs({ uri, destination }: RequestMessage): string[] {
  return [
    // curl would read brackets and braces as patterns, and resolve dot segments.
    ...(/[[\]{}]/.test(uri) ? ["--globoff"] : []),
    ...(/\/\.\.?(?:[/?]|$)/.test(uri) ? ["--path-as-is"] : []),
    // If the client was on this machine, the host is unlikely to resolve to it.
    ...(isLoopback(destination) ? [`--connect-to '::${destination}'`] : []),
  ];
}

function isLoopback(destination: string): boolean {
  return /^(?:127(?:\.\d{1,3}){3}|\[::1\]):\d+$/.test(destination);
}

function headerArgs({ headers, uri }: RequestMessage, hasBody: boolean, quote: Quote): string[] {
  const names = new Set(headers.map(([name]) => name));
  const ownHost = headers.find(([name, value]) => name === "host" && value !== hostOf(uri));
  // curl reads a field that begins with @ from a file, and a trace file may contain one.
  const shown = headers.filter((field) => TOKEN.test(field[0]) && (!COMPUTED.has(field[0]) || field === ownHost));
  const omitted = [...ADDED, ...(hasBody ? ["content-type"] : [])].filter((name) => !names.has(name));
  return [
    ...shown.map(([name, value]) => `--header ${quote(value === "" ? `${name};` : `${name}: ${value}`, name)}`),
    ...omitted.map((name) => `--header '${name}:'`),
  ];
}

/** The authority of a URI, which curl sends as Host. */
function hostOf(uri: string): string {
  return /^[a-z]+:\/\/([^/?#]*)/i.exec(uri)?.[1] ?? "";
}

/** Short enough, and without zero bytes, which no argument can have. */
function isArgument(bytes: Uint8Array): boolean {
  return bytes.length <= MAX_ARGUMENT && !bytes.includes(0);
}

/** One character for each byte. */
function latin1(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

/** A parameter of a URL that is redacted. */
const PARAMETER = /([^=&#;?\s"'<>]+)=$/;

/** Bytes (one character each) as one word of bash. `name`: what the text is. */
type Quote = (text: string, name: string) => string;

/** `<redacted>` becomes a variable that is called like the parameter before it, else `name`, and is added to `variables`. */
function quoted(text: string, name: string, variables: Set<string>): string {
  const parts = text.split(REDACTED);
  return parts
    .map((part, i) => {
      const word = part === "" && parts.length > 1 ? "" : literal(part);
      if (i === parts.length - 1) return word;
      const variable = `SECRET_${(PARAMETER.exec(part)?.[1] ?? name).toUpperCase().replace(/[^A-Z0-9]+/g, "_")}`;
      variables.add(variable);
      return `${word}"\${${variable}:?}"`;
    })
    .join("");
}

/** In single quotes; in bash's `$'…'` if it has bytes other than printable ASCII. */
function literal(text: string): string {
  if (/^[\x20-\x7e\n]*$/.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const escaped = text.replace(/[^\x20-\x7e]|['\\!]/gu, (char) => {
    const bytes = char > "\xff" ? new TextEncoder().encode(char) : [char.charCodeAt(0)];
    return Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  });
  return `$'${escaped}'`;
}
