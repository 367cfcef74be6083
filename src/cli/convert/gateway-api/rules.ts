/** Rules of HTTPRoutes: matches, filters and limits. */
import { isIP } from "node:net";
import { parseDuration } from "../../../base/durations.ts";
import { TRACEGATE_GROUP } from "../../../kube/objects.ts";
import { type ConvertedRoute, type Json, NOT_CONVERTED } from "../converted.ts";
import { nameOf } from "../names.ts";
import { quoted } from "../paths.ts";
import { backendRefs } from "./backends.ts";
import type { Output, Owner } from "./output.ts";
import { inCluster } from "./texts.ts";

/** Of a rule, by the Gateway API. */
export const MAX_MATCHES = 64;

export function ruleOf(route: ConvertedRoute, named: readonly Json[], owner: Owner, output: Output): Json {
  const { matches, policies, backends } = route;
  const name = nameOf(route.group ?? route.name);
  const filters: Json[] = [];
  const fields: Record<string, unknown> = {};
  const others: Record<string, unknown> = {};
  for (const [kind, value] of Object.entries(policies)) {
    const filter = FILTERS[kind]?.(value as Json, matches);
    const timeouts = kind === "timeout" ? timeoutsOf(value as Json) : undefined;
    if (filter !== undefined) filters.push(filter);
    else if (timeouts !== undefined) fields.timeouts = timeouts;
    else others[kind] = value;
  }
  if (Object.keys(others).length > 0) {
    const traffic = inCluster(others, owner, output);
    const wanted = policies.directResponse === NOT_CONVERTED ? "not-converted" : name;
    const policy = output.share("TracegatePolicy", owner.namespace, wanted, { traffic });
    filters.push({
      type: "ExtensionRef",
      extensionRef: { group: TRACEGATE_GROUP, kind: "TracegatePolicy", name: policy },
    });
  }
  const refs = backends.flatMap((each) => backendRefs(each, named, name, owner, output));
  return {
    ...(matches.length > 0 && { matches: matches.map(matchOf) }),
    ...(filters.length > 0 && { filters }),
    ...fields,
    ...(refs.length > 0 && { backendRefs: refs }),
  };
}

/** Paths that the Gateway API takes as `Exact` and `PathPrefix`. */
const PLAIN_PATH = /^\/(?!.*(?:\/\/|\/\.\.?(?:\/|$)|%2[fF]))(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*$/;

function matchOf({ path, method, headers, query }: Json): Json {
  return {
    ...(path !== undefined && { path: pathOf(path as Json) }),
    ...(method !== undefined && { method }),
    ...(headers !== undefined && { headers: (headers as readonly Json[]).map(valueMatch) }),
    ...(query !== undefined && { queryParams: (query as readonly Json[]).map(valueMatch) }),
  };
}

function pathOf({ exact, pathPrefix, regex }: Json): Json {
  const text = String(exact ?? pathPrefix);
  if (regex !== undefined) return { type: "RegularExpression", value: regex };
  if (PLAIN_PATH.test(text)) return { type: exact === undefined ? "PathPrefix" : "Exact", value: text };
  const end = exact === undefined ? "(?:/.*)?" : "";
  return { type: "RegularExpression", value: `${quoted(text.replace(/(?<=.)\/$/, ""))}${end}` };
}

function valueMatch({ name, value }: Json): Json {
  const { exact, regex } = value as Json;
  return { name, ...(regex === undefined ? { value: exact } : { type: "RegularExpression", value: regex }) };
}

/** A filter that says the same; undefined: there is none, and a TracegatePolicy says it. */
const FILTERS: Readonly<Record<string, (value: Json, matches: readonly Json[]) => Json | undefined>> = {
  requestHeaderModifier: (value) => headerFilter("RequestHeaderModifier", "requestHeaderModifier", value),
  responseHeaderModifier: (value) => headerFilter("ResponseHeaderModifier", "responseHeaderModifier", value),
  urlRewrite({ authority, path, ...others }, matches) {
    const hostname = authority === undefined ? undefined : hostOf(authority as Json);
    const modifier = path === undefined ? undefined : pathModifier(path as Json, matches);
    const isLost = (authority !== undefined && hostname?.port !== undefined) || Object.keys(others).length > 0;
    if (isLost || hostname === null || modifier === null) return undefined;
    return {
      type: "URLRewrite",
      urlRewrite: { ...(hostname && { hostname: hostname.hostname }), ...(modifier && { path: modifier }) },
    };
  },
  requestRedirect({ scheme, authority, path, status }, matches) {
    const host = authority === undefined ? undefined : hostOf(authority as Json);
    const modifier = path === undefined ? undefined : pathModifier(path as Json, matches);
    if (host === null || modifier === null) return undefined;
    return {
      type: "RequestRedirect",
      requestRedirect: {
        ...(scheme !== undefined && { scheme }),
        ...host,
        ...(modifier && { path: modifier }),
        ...(status !== undefined && { statusCode: status }),
      },
    };
  },
  cors({ maxAge, ...others }) {
    const seconds = typeof maxAge === "string" ? (parseDuration(maxAge) ?? Number.NaN) / 1000 : undefined;
    if (seconds !== undefined && (!Number.isInteger(seconds) || seconds < 1)) return undefined;
    return { type: "CORS", cors: { ...others, ...(seconds !== undefined && { maxAge: seconds }) } };
  },
};

function headerFilter(type: string, field: string, { set, add, remove }: Json): Json | undefined {
  const lists = [set, add].map((each) =>
    Object.entries((each ?? {}) as Readonly<Record<string, string>>).map(([name, value]) => ({ name, value })),
  );
  const isLost = lists.some((list) => list.length > 16 || list.some(({ value }) => value === ""));
  const [setting = [], adding = []] = lists;
  if (isLost) return undefined;
  return {
    type,
    [field]: {
      ...(setting.length > 0 && { set: setting }),
      ...(adding.length > 0 && { add: adding }),
      ...(remove !== undefined && { remove }),
    },
  };
}

const HOSTNAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Null: a filter cannot say it. */
function hostOf({ full, host }: Json): { readonly hostname: string; readonly port?: number } | null {
  const [, hostname = "", port] = /^([^:]*)(?::(\d+))?$/.exec(String(full ?? host ?? "")) ?? [];
  if (!HOSTNAME.test(hostname) || isIP(hostname) !== 0) return null;
  return { hostname, ...(port !== undefined && { port: Number(port) }) };
}

/** Null: a filter cannot say it. */
function pathModifier({ full, prefix }: Json, matches: readonly Json[]): Json | null {
  if (full !== undefined) return { type: "ReplaceFullPath", replaceFullPath: full };
  const isPrefix = matches.every(({ path }) => path === undefined || pathOf(path as Json).type === "PathPrefix");
  return prefix === undefined || !isPrefix ? null : { type: "ReplacePrefixMatch", replacePrefixMatch: prefix };
}

/** Durations as the Gateway API writes them (GEP-2257). */
const DURATION = /^([0-9]{1,5}(h|m|s|ms)){1,4}$/;

function timeoutsOf({ requestTimeout, backendRequestTimeout }: Json): Json | undefined {
  const written = { request: requestTimeout, backendRequest: backendRequestTimeout };
  const entries = Object.entries(written).filter(([, value]) => value !== undefined);
  return entries.every(([, value]) => DURATION.test(String(value))) ? Object.fromEntries(entries) : undefined;
}
