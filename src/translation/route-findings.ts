/** What lints find in routes, and the part of it that shows in one route alone. */
import { isIP } from "node:net";
import type { Route, RouteMatch, TcpRoute } from "../ir/ir.ts";
import { isConditional } from "../policies/define/conditional.ts";
import { targetName } from "../upstream/settings/pool-target.ts";
import type { Target } from "../upstream/settings/target.ts";
import type { Found } from "./problems/lint-table.ts";

export type AnyRoute = Route | TcpRoute;

/** A route, or one of its matches. */
export interface RoutePlace {
  readonly route: AnyRoute;
  /** Index into its matches; undefined = all of it. */
  readonly match?: number | undefined;
}

type RouteLint =
  | "shadowed-route"
  | "unreachable-match"
  | "unreachable-hostname"
  | "impossible-match"
  | "bypassed-authentication"
  | "unserved-login-path"
  | "protected-logout-page"
  | "lower-case-method"
  | "literal-asterisk"
  | "replaced-prefix"
  | "unused-backends"
  | "no-backends"
  | "no-weight"
  | "split-servers"
  | "lone-retry";

/** Which field of a route or match a finding is about; each source has its own names for them. */
export type RouteField = "hostnames" | "method" | "path" | "headers" | "query" | "backends" | "retry";

/** One finding, for files and for objects of Kubernetes. */
export type RouteFinding = RoutePlace &
  {
    readonly [Code in RouteLint]: {
      readonly code: Code;
      readonly found: Found<Code>;
      /** undefined: the route or match as a whole. */
      readonly field?: RouteField | undefined;
      readonly related?: readonly (RoutePlace & { readonly message: string })[];
    };
  }[RouteLint];

/** What is found in a route alone. */
export function findingsIn(route: Route): RouteFinding[] {
  return [...route.matches.flatMap((match, i) => inMatch(route, match, i)), ...inBackends(route)];
}

function inMatch(route: Route, { method, path, headers, query }: RouteMatch, match: number): RouteFinding[] {
  const findings: RouteFinding[] = [];
  if (method !== undefined && method !== method.toUpperCase())
    findings.push({ route, match, code: "lower-case-method", found: [method], field: "method" });
  // Users may write `/api/*` and mean a prefix. Paths may contain `*`, so this is not necessarily a mistake.
  if (path.type !== "regex" && path.value.includes("*")) {
    const prefix = path.value.slice(0, path.value.indexOf("*")).replace(/\/+$/, "") || "/";
    findings.push({ route, match, code: "literal-asterisk", found: [prefix], field: "path" });
  }
  if (path.type !== "pathPrefix")
    for (const kind of replacingPrefixes(route))
      findings.push({ route, match, code: "replaced-prefix", found: [kind], field: "path" });
  const pseudo = headers.find(({ name, type }) => name === ":method" && type === "exact");
  const contradiction =
    method !== undefined && pseudo !== undefined && pseudo.value !== method
      ? `the method cannot be both ${method} and ${pseudo.value}`
      : contradictionIn(headers.filter(({ name }) => name.startsWith(":")));
  const field = contradiction === undefined ? "query" : "headers";
  const why = contradiction ?? contradictionIn(query);
  if (why !== undefined) findings.push({ route, match, code: "impossible-match", found: [why], field });
  return findings;
}

/** Two values for something that has one. A header may occur twice; of a query parameter the last value counts. */
function contradictionIn(list: RouteMatch["headers"]): string | undefined {
  const seen = new Map<string, string>();
  for (const { name, type, value } of list) {
    if (type !== "exact") continue;
    const other = seen.get(name);
    if (other !== undefined && other !== value) return `${name} cannot be both ${other} and ${value}`;
    seen.set(name, value);
  }
  return undefined;
}

/** Policies that replace the prefix that was matched: they fail with 500 for requests that another kind of match selected. */
function replacingPrefixes({ policies, backends }: Route): ("urlRewrite" | "requestRedirect")[] {
  // The route of the group is matched last, and has matches of its own.
  if (backends.some(({ target }) => target.type === "routeGroup")) return [];
  return (["urlRewrite", "requestRedirect"] as const).filter((kind) => {
    const policy = policies[kind];
    return policy !== undefined && !isConditional(policy) && policy.path !== undefined && "prefix" in policy.path;
  });
}

function inBackends(route: Route): RouteFinding[] {
  const { policies, backends, sources } = route;
  const { directResponse, requestRedirect, retry } = policies;
  if (requestRedirect !== undefined && !isConditional(requestRedirect) && backends.length > 0)
    return [{ route, code: "unused-backends", found: [], field: "backends" }];
  if (directResponse !== undefined || requestRedirect !== undefined) return [];
  if (backends.length === 0) return [{ route, code: "no-backends", found: [] }];
  const used = backends.filter(({ weight }) => weight > 0);
  if (used.length === 0) return [{ route, code: "no-weight", found: [], field: "backends" }];
  const servers = splitServers(route, used);
  if (servers.length > 1) return [{ route, code: "split-servers", found: [servers], field: "backends" }];
  // A retry to a backend with a single endpoint does not help while that endpoint is down.
  if (retry === undefined || retry.otherBackends !== undefined) return [];
  const single = used.flatMap(({ target }) => onlyAddress(target) ?? [])[0];
  if (single === undefined) return [];
  const isOwn = sources?.retry === undefined || sources.retry.some((source) => source.in === undefined);
  return [{ route, code: "lone-retry", found: [single, used.length > 1], field: isOwn ? "retry" : undefined }];
}

/** The hosts of a split that looks like a pool: written in the route, with equal shares, and retried or checked as if others took over. */
function splitServers({ key: route, policies: { retry } }: Route, backends: Route["backends"]): string[] {
  if (retry?.otherBackends !== undefined) return [];
  if (retry === undefined && backends.every(({ policies }) => policies.health === undefined)) return [];
  const servers = backends.flatMap(({ key, target, weight }) =>
    key.startsWith(`/${route}/`) &&
    weight === backends[0]?.weight &&
    (target.type === "static" || target.type === "unix")
      ? targetName(target)
      : [],
  );
  return servers.length === backends.length ? servers : [];
}

/** The one address of a target; undefined for names and services, which may have several. */
function onlyAddress(target: Target): string | undefined {
  if (target.type === "unix") return `unix:${target.path}`;
  return target.type === "static" && isIP(target.host) !== 0 ? targetName(target) : undefined;
}
