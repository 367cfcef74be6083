import type { RouteRow, RoutesAnswer, RoutesQuery } from "../admin/plane/answers.ts";
import { type Locate, withPlace } from "../base/origin.ts";
import { REDACTED, SECRET_PARAMETERS } from "../base/redaction.ts";
import { backendName } from "../ir/backend-name.ts";
import type { Listener, Route, RouteBackend, RouteMatch, TcpRoute, ValueMatch } from "../ir/ir.ts";
import { type PackedIr, unpackIr } from "../ir/packed-ir.ts";
import { inPrecedence } from "../ir/route-order.ts";
import { NO_POLICY_SET } from "../policies/merge.ts";
import { REQUEST_LABELS } from "../telemetry/metric-table.ts";
import { Traffic } from "../telemetry/traffic.ts";
import { lintedRoute } from "../translation/linted-route.ts";
import { lintRoutes } from "../translation/route-lints.ts";
import { type Counted, isFailed } from "./traffic-history.ts";

/** What the list is made from. */
interface RouteSource {
  readonly configuration: PackedIr;
  readonly status: { readonly generation: number };
  readonly supervisor: Counted;
  readonly locate: Locate;
}

type AnyRoute = Route | TcpRoute;

/** Routes of one listener, or of a group. */
interface Owner {
  readonly of: Pick<RouteRow, "bind" | "listener" | "group">;
  /** What the labels of their requests begin with; undefined: requests come from any listener. */
  readonly labels: readonly string[] | undefined;
  readonly hostname: string;
  readonly policies: Listener["policies"];
  readonly routes: readonly AnyRoute[];
}

/** A route before it is shown. */
interface Listed {
  readonly owner: Owner;
  readonly route: AnyRoute;
  readonly position: number;
  readonly traffic: Traffic | undefined;
  readonly shadowedBy: readonly string[] | undefined;
}

type Order = NonNullable<RoutesQuery["sort"]>;

const COMPARE: { readonly [Each in Order]: ((a: Listed, b: Listed) => number) | undefined } = {
  precedence: undefined,
  name: (a, b) => (nameOf(a.route) < nameOf(b.route) ? -1 : nameOf(a.route) > nameOf(b.route) ? 1 : 0),
  requests: (a, b) => (b.traffic?.requests ?? 0) - (a.traffic?.requests ?? 0),
  errors: (a, b) => (b.traffic?.errors ?? 0) - (a.traffic?.errors ?? 0),
  p50: (a, b) => slowness(b, 0.5) - slowness(a, 0.5),
  p99: (a, b) => slowness(b, 0.99) - slowness(a, 0.99),
};

/** The routes of the configuration in effect. `hidden`: names (lower-case) of headers whose values are secrets. */
export function routeList(
  { configuration, status, supervisor, locate }: RouteSource,
  { search = "", sort = "precedence", page, limit }: RoutesQuery & { readonly page: number; readonly limit: number },
  hidden: ReadonlySet<string>,
): RoutesAnswer {
  const traffic = trafficByRoute(supervisor);
  const all = ownersIn(configuration).flatMap((owner) => listed(owner, traffic));
  const wanted = search.toLowerCase();
  const found = wanted === "" ? all : all.filter((each) => searchText(each).includes(wanted));
  const compare = COMPARE[sort];
  if (compare !== undefined) found.sort(compare);
  const rows = found.slice((page - 1) * limit, page * limit).map((each) => withPlace(rowOf(each, hidden), locate));
  return { generation: status.generation, total: all.length, found: found.length, routes: rows };
}

function ownersIn(configuration: PackedIr): Owner[] {
  const { binds, routeGroups } = unpackIr(configuration);
  const ofListeners = binds.flatMap((bind) =>
    bind.listeners.map(({ name, gatewayNamespace, gatewayName, hostname, policies, routes, tcpRoutes }): Owner => {
      const gateway = `${gatewayNamespace}/${gatewayName}`;
      const of = { bind: bind.key, listener: name };
      return { of, labels: [bind.key, gateway, name], hostname, policies, routes: [...routes, ...tcpRoutes] };
    }),
  );
  const ofGroups = routeGroups.map(
    ({ name, routes }): Owner => ({
      of: { group: name },
      labels: undefined,
      hostname: "",
      policies: NO_POLICY_SET,
      routes,
    }),
  );
  return [...ofListeners, ...ofGroups];
}

function listed(owner: Owner, traffic: ReadonlyMap<string, Traffic>): Listed[] {
  const linted = owner.routes.map((route) => lintedRoute(route, owner.hostname));
  const winners = new Map<AnyRoute, readonly string[]>();
  for (const { route, code, found } of lintRoutes(owner.policies, linted, (winner) => nameOf(winner.route)))
    if (code === "shadowed-route") winners.set(route, found[0]);
  return inPrecedence(owner.routes).map((route, index) => ({
    owner,
    route,
    position: index + 1,
    traffic: traffic.get(keyOf([...(owner.labels ?? []), nameOf(route), route.ruleName ?? UNKNOWN])),
    shadowedBy: winners.get(route),
  }));
}

const UNKNOWN = "unknown";
const OF_LISTENER = (["bind", "gateway", "listener"] as const).map((label) => REQUEST_LABELS.indexOf(label));
const OF_ROUTE = (["route", "route_rule"] as const).map((label) => REQUEST_LABELS.indexOf(label));

/** Requests by route at each listener, and by route at all: that is how those of groups are counted. */
function trafficByRoute(counted: Counted): ReadonlyMap<string, Traffic> {
  const found = new Map<string, Traffic>();
  counted.eachRequestSeries((labels, durations) => {
    const route = OF_ROUTE.map((at) => labels[at] ?? "");
    const failed = isFailed(labels);
    for (const key of [keyOf(route), keyOf([...OF_LISTENER.map((at) => labels[at] ?? ""), ...route])]) {
      let traffic = found.get(key);
      if (traffic === undefined) {
        traffic = new Traffic();
        found.set(key, traffic);
      }
      traffic.add(durations, failed);
    }
  });
  return found;
}

function keyOf(labels: readonly string[]): string {
  return labels.join("\0");
}

function slowness({ traffic }: Listed, share: number): number {
  return traffic?.quantile(share) ?? -1;
}

function nameOf({ namespace, name }: AnyRoute): string {
  return `${namespace}/${name}`;
}

/** Without values of headers and parameters: who may search must not find out what is redacted. */
function searchText({ owner, route }: Listed): string {
  const { bind, listener, group } = owner.of;
  const paths = "matches" in route ? route.matches.map(({ path, method }) => `${method ?? ""} ${path.value}`) : [];
  const backends = route.backends.map(nameOfBackend);
  const parts = [
    route.key,
    nameOf(route),
    route.ruleName,
    bind,
    listener,
    group,
    ...route.hostnames,
    ...paths,
    ...backends,
  ];
  return parts
    .filter((part) => part !== undefined)
    .join("\n")
    .toLowerCase();
}

function rowOf({ owner, route, position, traffic, shadowedBy }: Listed, hidden: ReadonlySet<string>): RouteRow {
  const [p50, p99] = [traffic?.quantile(0.5), traffic?.quantile(0.99)];
  return {
    key: route.key,
    name: nameOf(route),
    ...(route.ruleName !== undefined && { rule: route.ruleName }),
    ...owner.of,
    position,
    hostnames: route.hostnames.length === 0 ? ["*"] : route.hostnames,
    matches: "matches" in route ? route.matches.map((match) => matchText(match, hidden)) : [],
    backends: route.backends.map((backend) => ({ name: nameOfBackend(backend), weight: backend.weight })),
    ...(route.origin && { origin: route.origin }),
    ...(shadowedBy && { shadowedBy }),
    requests: traffic?.requests ?? 0,
    errors: traffic?.errors ?? 0,
    ...(p50 !== undefined && p99 !== undefined && { p50, p99 }),
  };
}

const PATHS = { exact: "path", pathPrefix: "path prefix", regex: "path pattern" } as const;

/** `path prefix /api, method GET, header x-canary = true` */
function matchText({ path, method, headers, query }: RouteMatch, hidden: ReadonlySet<string>): string {
  const parts = [`${PATHS[path.type]} ${path.value}`];
  if (method !== undefined) parts.push(`method ${method}`);
  for (const header of headers) parts.push(`header ${valueText(header, hidden.has(header.name.toLowerCase()))}`);
  for (const parameter of query) parts.push(`parameter ${valueText(parameter, SECRET_PARAMETERS.has(parameter.name))}`);
  return parts.join(", ");
}

function valueText({ name, type, value }: ValueMatch, isSecret: boolean): string {
  return `${name} ${type === "exact" ? "=" : "matches"} ${isSecret ? REDACTED : value}`;
}

function nameOfBackend(backend: RouteBackend): string {
  const { target } = backend;
  return target.type === "routeGroup" ? `group ${target.name}` : backendName(backend);
}
