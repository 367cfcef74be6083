/**
 * Authorities, paths and queries of requests, and their changes by `urlRewrite` and `requestRedirect`. Configured values are
 * checked by the parser for requests, so nothing that the gateway would reject from a client can be configured.
 */
import { GatewayError } from "../../base/errors.ts";
import { parseTarget, type TargetParts } from "../../http/message/target.ts";
import { type ConfigPath, PolicyError } from "../contract/policy-error.ts";
import type { PolicyContext } from "../contract/types.ts";
import type { PathChange } from "../schema/fields.ts";

/** The host of an authority, in its original case (`Example.com:80` → `Example.com`, `[::1]:80` → `[::1]`). */
export function hostPart(authority: string): string {
  return authority.slice(0, portColon(authority));
}

/** The port of an authority, undefined if it has none. */
export function portPart(authority: string): number | undefined {
  const colon = portColon(authority);
  return colon === authority.length ? undefined : Number(authority.slice(colon + 1));
}

/** `host`, or `host:port` unless `port` is absent or the default of `scheme`. */
export function withPort(host: string, port: number | undefined, scheme: "http" | "https"): string {
  return port === undefined || port === (scheme === "https" ? 443 : 80) ? host : `${host}:${port}`;
}

/** Index of the colon before the port, or the length: colons inside brackets belong to an IPv6 address (RFC 3986, section 3.2.2). */
function portColon(authority: string): number {
  const colon = authority.lastIndexOf(":");
  return colon > authority.lastIndexOf("]") ? colon : authority.length;
}

/** Whether a text is `host[:port]`. */
export function isAuthority(text: string): boolean {
  return parseTarget("GET", "/", text, 1, emptyParts()) === undefined;
}

/** Throws a PolicyError at `path` unless `authority` is `host[:port]`. */
export function checkAuthority(path: ConfigPath, authority: string): void {
  if (!isAuthority(authority)) throw PolicyError.at(path, `${JSON.stringify(authority)} is not host[:port]`);
}

/** Splits `/path[?query]`. Throws a PolicyError at `path` for text that would not be valid in a request. */
export function parsePathAndQuery(path: ConfigPath, text: string): TargetParts {
  if (!text.startsWith("/")) throw PolicyError.at(path, `${JSON.stringify(text)} must begin with "/"`);
  const parts = emptyParts();
  const error = parseTarget("GET", text, "host", 1, parts);
  if (error !== undefined)
    throw PolicyError.at(path, `${JSON.stringify(text)}: ${error.detail}; percent-encode what a URL cannot hold`);
  return parts;
}

function emptyParts(): TargetParts {
  return { authority: "", path: "", search: "", scheme: "http" };
}

/** `search` is empty or begins with `?`. */
interface PathAndSearch {
  readonly path: string;
  readonly search: string;
}

/**
 * Compiles a change of the path; `undefined` changes nothing. The request's query is always kept and follows the query of `full`.
 * `prefix` replaces the segments that the route's prefix match consumed; the result has exactly one slash where the two meet and
 * is never empty (docs/configuration.md#pathchange, Gateway API HTTPPathModifier). The returned function throws TG_FILTER_FAILED
 * if the route did not match by prefix.
 */
export function compilePathChange(change: PathChange | undefined): (context: PolicyContext) => PathAndSearch {
  if (change === undefined) return ({ request }) => request;
  if ("full" in change) return replaceFull(["path", "full"], change.full);
  return replacePrefix(["path", "prefix"], change.prefix);
}

function replaceFull(at: ConfigPath, full: string): (context: PolicyContext) => PathAndSearch {
  const { path, search } = parsePathAndQuery(at, full === "" ? "/" : full);
  return ({ request }) => ({ path, search: joinQueries(search, request.search) });
}

function replacePrefix(at: ConfigPath, prefix: string): (context: PolicyContext) => PathAndSearch {
  const { path, search } = parsePathAndQuery(at, prefix === "" ? "/" : prefix);
  if (search !== "") throw PolicyError.at(at, `${JSON.stringify(prefix)} has a query; only path.full may have one`);
  const withSlash = path.endsWith("/") ? path : `${path}/`;
  const withoutSlashes = path.replace(/\/+$/, "");
  return ({ request, matchedPrefix }) => {
    const rest = afterPrefix(request.path, matchedPrefix);
    if (rest === undefined) throw new GatewayError("TG_FILTER_FAILED", "prefix redirect requires prefix match");
    // Nothing follows the matched prefix: the configured text is the whole path.
    if (rest === "") return { path, search: request.search };
    return { path: rest === "/" ? withSlash : withoutSlashes + rest, search: request.search };
  };
}

/** The rest of the path after the matched prefix: empty, or begins with `/`; undefined if the route did not match by prefix. */
function afterPrefix(path: string, prefix: string | undefined): string | undefined {
  if (prefix === undefined) return undefined;
  if (path === prefix) return "";
  const end = prefix.endsWith("/") ? prefix.length - 1 : prefix.length;
  if (!path.startsWith(prefix) || (path.length > end && path[end] !== "/")) return undefined;
  return path.slice(end);
}

/** Both queries, the configured one first: servers that take the first of two equal parameters then take the configured one. */
function joinQueries(own: string, received: string): string {
  if (own === "") return received;
  return received === "" || received === "?" ? own : `${own}&${received.slice(1)}`;
}
