import { GatewayError } from "../../base/errors.ts";
import { parseTarget, type TargetParts } from "../../http/h1/target.ts";
import { type ConfigPath, PolicyError } from "../policy-error.ts";
import type { PolicyContext } from "../types.ts";
import type { PathChange } from "./field-schemas.ts";

/** The host of an authority with its case kept (`Example.com:80` → `Example.com`, `[::1]:80` → `[::1]`). */
export function hostPart(authority: string): string {
  return authority.slice(0, portColon(authority));
}

/** The port of an authority, undefined when it has none. */
export function portPart(authority: string): number | undefined {
  const colon = portColon(authority);
  return colon === authority.length ? undefined : Number(authority.slice(colon + 1));
}

/** `host`, or `host:port` unless `port` is absent or the default of `scheme`. */
export function withPort(host: string, port: number | undefined, scheme: "http" | "https"): string {
  return port === undefined || port === (scheme === "https" ? 443 : 80) ? host : `${host}:${port}`;
}

function portColon(authority: string): number {
  const colon = authority.lastIndexOf(":");
  return colon > authority.lastIndexOf("]") ? colon : authority.length;
}

/** Whether a text is `host[:port]`. */
export function isAuthority(text: string): boolean {
  return parseTarget("GET", "/", text, 1, emptyParts()) === undefined;
}

/** Throws a PolicyError about what stands at `path` unless `authority` is `host[:port]`. */
export function checkAuthority(path: ConfigPath, authority: string): void {
  if (!isAuthority(authority)) throw PolicyError.at(path, `${JSON.stringify(authority)} is not host[:port]`);
}

/** Takes `/path[?query]` apart. Throws a PolicyError about what stands at `path` when it could not stand in a request. */
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

export interface PathAndSearch {
  readonly path: string;
  readonly search: string;
}

/**
 * A change of the path ready to run; `undefined` leaves it. The request's query is always kept, behind the one that `full`
 * may have. `prefix` replaces what the route's prefix match consumed, whole segments only; where the two meet there is exactly
 * one slash, and nothing left means `/` (reference 3.15, Gateway API HTTPPathModifier).
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
    // `/a` matched, nothing follows: the configured text stands as it is.
    if (rest === "") return { path, search: request.search };
    return { path: rest === "/" ? withSlash : withoutSlashes + rest, search: request.search };
  };
}

/** What follows the matched prefix: `` or begins with `/`; undefined when the match was none of a prefix. */
function afterPrefix(path: string, prefix: string | undefined): string | undefined {
  if (prefix === undefined) return undefined;
  if (path === prefix) return "";
  const end = prefix.endsWith("/") ? prefix.length - 1 : prefix.length;
  if (!path.startsWith(prefix) || (path.length > end && path[end] !== "/")) return undefined;
  return path.slice(end);
}

function joinQueries(own: string, received: string): string {
  if (own === "") return received;
  return received === "" || received === "?" ? own : `${own}&${received.slice(1)}`;
}
