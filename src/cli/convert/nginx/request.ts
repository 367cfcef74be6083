/** The request that a backend gets, and how it is called. */
import type { Json } from "../converted.ts";
import type { Location, LocationMatch } from "./locations.ts";
import type { Reading } from "./reading.ts";
import { all, durationOf, one, type Scope, valuesOf } from "./scope.ts";
import type { Server } from "./servers.ts";
import { celOf, type TextScope, variablesIn, whole } from "./variables.ts";

/** Fields that the gateway sets itself, with the values that say the same. */
const OWN_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "x-forwarded-for": ["$remote_addr", "$proxy_add_x_forwarded_for"],
  "x-forwarded-proto": ["$scheme"],
  "x-forwarded-host": ["$host", "$http_host"],
  "x-request-id": ["$request_id"],
};

/** Header fields of the request to the backend, and its path after `rewrite`. */
export function requestOf(
  reading: Reading,
  scope: Scope,
  server: Server,
  authority: string,
  groups: string | undefined,
): Json {
  const set: Record<string, string> = {};
  const remove: string[] = [];
  const computed: Record<string, string> = {};
  const text: TextScope = { serverName: server.names[0] ?? "", ...(groups !== undefined && { groups }) };
  let host: string | undefined = authority;
  for (const each of all(scope, "proxy_set_header")) {
    const [name = "", value = ""] = each.args;
    const key = name.toLowerCase();
    if (key === "host") {
      if (["$host", "$http_host", "$host:$server_port"].includes(value)) host = undefined;
      else if (value === "$proxy_host") host = authority;
      else if (!value.includes("$")) host = value;
      else {
        host = undefined;
        const cel = celOf(value, text);
        if (cel === undefined)
          reading.find("error", each, `Host ${value} has no equivalent`, "set :authority by CEL in transformations");
        else computed[":authority"] = cel;
      }
    } else if (["connection", "upgrade", "content-length", "transfer-encoding", "te", "keep-alive"].includes(key))
      continue;
    else if (OWN_FIELDS[key]?.includes(value) === true) continue;
    else if (value === "") remove.push(name);
    else if (!value.includes("$")) set[name] = value;
    else {
      const cel = celOf(value, text);
      if (cel === undefined) {
        const variables = variablesIn(value).map((each) => `$${each}`);
        reading.find(
          "error",
          each,
          `${name}: ${variables.join(", ")} has no equivalent; the header is removed`,
          "set the header by CEL in transformations",
        );
        // The backend may trust it, so clients must not set it.
        remove.push(name);
      } else computed[name] = cel;
    }
  }
  const modifier = { ...(Object.keys(set).length > 0 && { set }), ...(remove.length > 0 && { remove }) };
  const [block = []] = scope;
  for (const each of valuesOf(block, "rewrite")) {
    const [pattern = "", replacement = "", flag] = each.args;
    if (!reading.isUsable(pattern, each)) continue;
    if (/\$(?![1-9])/.test(replacement)) {
      reading.find("error", each, "a rewrite with variables is left out", "set :path by CEL in transformations");
      continue;
    }
    if (flag !== "break")
      reading.find(
        "warning",
        each,
        "after the rewrite no other location is chosen",
        "add a route for the new path, or redirect to it",
      );
    const dropsQuery = replacement.endsWith("?");
    const target = JSON.stringify(replacement.replace(/\?$/, ""));
    const path = computed[":path"] ?? "request.path";
    const query = dropsQuery ? "" : " + request.pathAndQuery.stripPrefix(request.path)";
    computed[":path"] =
      `${path.replace(/ \+ request\.pathAndQuery.*$/, "")}.regexReplace(${JSON.stringify(whole(pattern))}, ${target})${query}`;
  }
  return {
    ...(Object.keys(modifier).length > 0 && { requestHeaderModifier: modifier }),
    ...(host !== undefined && { urlRewrite: { authority: { full: host } } }),
    ...(Object.keys(computed).length > 0 && { transformations: { request: { set: computed } } }),
  };
}

/** The path that the backend gets. */
export function pathOf(
  { kind, path }: Location,
  part: LocationMatch["part"],
  uri: string | undefined,
  matches: readonly Json[],
): Json {
  if (uri === undefined) return {};
  if (kind === "exact") return { urlRewrite: { path: { full: uri } } };
  if (kind === "regex") return {};
  const isPrefix = matches.every((each) => "pathPrefix" in (each.path as Json));
  if (part === "whole" && isPrefix && path.endsWith("/") === uri.endsWith("/"))
    return { urlRewrite: { path: { prefix: uri } } };
  const rest = `request.pathAndQuery.substring(${path.length})`;
  return { transformations: { request: { set: { ":path": `${JSON.stringify(uri)} + ${rest}` } } } };
}

/** Limits of calls. */
export function calling(scope: Scope): Json {
  const read = one(scope, "proxy_read_timeout")?.args[0];
  const next = one(scope, "proxy_next_upstream");
  const codes = (next?.args ?? []).flatMap((each) => (/^http_\d+$/.test(each) ? [Number(each.slice(5))] : []));
  const tries = Number(one(scope, "proxy_next_upstream_tries")?.args[0] ?? "0");
  return {
    ...(read !== undefined && { timeout: { requestTimeout: durationOf(read) } }),
    ...(codes.length > 0 && {
      retry: {
        codes,
        ...(tries > 1 && { attempts: tries - 1 }),
        ...(next?.args.includes("non_idempotent") !== true && {
          precondition: 'request.method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]',
        }),
      },
    }),
  };
}
