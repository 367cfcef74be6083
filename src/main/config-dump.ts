import { formatHostPort } from "../base/listen-address.ts";
import type {
  Bind,
  Ir,
  Listener,
  PathMatch,
  Route,
  RouteBackend,
  Service,
  Target,
  TcpRoute,
  ValueMatch,
  Workload,
} from "../ir/ir.ts";
import type { PolicySet } from "../ir/policies.ts";
import { shownPolicy } from "../policies/shown.ts";
import { connectionOf } from "../proxy/connection-of.ts";
import { REDACTED } from "../trace/redaction.ts";
import { combineStats, type EndpointStats, endpointKey } from "../upstream/endpoints.ts";
import { localityBuckets, type Place } from "../upstream/locality.ts";
import { targetName } from "../upstream/pool-target.ts";

type Json = Readonly<Record<string, unknown>>;

/** What a dump shows, and hides, besides the configuration. */
export interface Live {
  /** Real ports by bind key. */
  readonly ports: Readonly<Record<string, number>>;
  readonly endpoints: ReadonlyMap<string, EndpointStats>;
  /** By the key of the backend. */
  readonly calls: ReadonlyMap<string, number>;
  /** Where this gateway runs. */
  readonly place: Place;
  /** Names (lower-case) of headers whose values are secrets. */
  readonly hidden: ReadonlySet<string>;
}

interface Context extends Live {
  readonly ir: Ir;
}

/** The configuration in force as `GET /config_dump` shows it (reference 4.4), without `config` and `version`. */
export function dumpIr(ir: Ir, state: Live): Json {
  const live = { ...state, ir };
  return {
    backends: ir.backends.map((backend) => ({
      backend: dumpBackend(backend.name, backend.target),
      ...endpoint(backend, live),
      ...inline(backend.policies, live),
    })),
    binds: byKey(ir.binds).map((bind) => dumpBind(bind, live)),
    policies: ir.targeted.map(({ key, name, target, policy }) => ({
      key,
      name,
      target,
      policy: mapValues(policy, (part) =>
        isObject(part) ? mapValues(part, (value, key) => shownPart(key, value, live)) : part,
      ),
    })),
    routes: {
      routeGroups: Object.fromEntries(
        ir.routeGroups.map((group) => [
          group.name,
          Object.fromEntries(group.routes.map((r) => [r.key, dumpRoute(r, live)])),
        ]),
      ),
    },
    services: ir.services.map((service) => dumpService(service, live)),
    workloads: ir.workloads.map((workload) => ({ ...workload })),
  };
}

function dumpBind(bind: Bind, live: Context): Json {
  return {
    key: bind.key,
    address: formatHostPort(bind.host, live.ports[bind.key] ?? bind.port),
    protocol: bind.protocol,
    tunnelProtocol: bind.tunnelProtocol,
    mode: bind.mode,
    listeners: Object.fromEntries(
      byKey(bind.listeners).map((listener) => [listener.key, dumpListener(listener, live)]),
    ),
  };
}

function dumpListener(listener: Listener, live: Context): Json {
  const secure = listener.protocol === "HTTPS" || listener.protocol === "TLS";
  const made = listener.tls?.dynamicCa !== undefined;
  const certificateSource = listener.tls === undefined ? null : { certificateSource: made ? "DynamicCa" : "Static" };
  const tcp = listener.protocol === "TCP" || listener.protocol === "TLS";
  return {
    key: listener.key,
    gatewayName: listener.gatewayName,
    gatewayNamespace: listener.gatewayNamespace,
    listenerName: listener.name,
    listenerSet: null,
    hostname: listener.hostname,
    protocol: secure ? { [listener.protocol]: certificateSource } : listener.protocol,
    ...(!tcp && {
      routes: Object.fromEntries(byKey(listener.routes).map((route) => [route.key, dumpRoute(route, live)])),
    }),
    ...(tcp && { tcpRoutes: Object.fromEntries(byKey(listener.tcpRoutes).map((r) => [r.key, dumpTcpRoute(r, live)])) }),
    ...inline(listener.policies, live),
  };
}

function dumpRoute(route: Route, live: Context): Json {
  return {
    key: route.key,
    name: route.name,
    namespace: route.namespace,
    ...(route.ruleName !== undefined && { ruleName: route.ruleName }),
    ...(route.hostnames.length > 0 && { hostnames: route.hostnames }),
    matches: route.matches.map((match) => ({
      path: dumpPath(match.path),
      ...(match.method !== undefined && { method: match.method }),
      ...(match.headers.length > 0 && { headers: match.headers.map((header) => dumpHeader(header, live)) }),
      ...(match.query.length > 0 && { query: match.query.map(dumpValue) }),
    })),
    backends: route.backends.map((backend) => dumpRouteBackend(backend, live)),
    ...inline(route.policies, live),
  };
}

function dumpTcpRoute(route: TcpRoute, live: Context): Json {
  const { key, name, namespace, ruleName, hostnames } = route;
  return {
    key,
    name,
    namespace,
    ...(ruleName !== undefined && { ruleName }),
    ...(hostnames.length > 0 && { hostnames }),
    backends: route.backends.map((backend) => dumpRouteBackend(backend, live)),
  };
}

function dumpPath(path: PathMatch): Json {
  return { [path.type]: path.value };
}

/** What a secret is compared with is a secret. */
function dumpHeader(header: ValueMatch, live: Context): Json {
  return dumpValue(live.hidden.has(header.name.toLowerCase()) ? { ...header, value: REDACTED } : header);
}

function dumpValue({ name, type, value }: ValueMatch): Json {
  return { name, value: { [type]: value } };
}

function dumpRouteBackend(backend: RouteBackend, live: Context): Json {
  return {
    weight: backend.weight,
    ...dumpTarget(backend),
    ...endpoint(backend, live),
    ...inline(backend.policies, live),
  };
}

function dumpTarget({ key, target }: RouteBackend): Json {
  // A named backend has the short key `/<name>`; an inline one extends its route's key.
  const named = /^\/[^/]+$/.test(key);
  switch (target.type) {
    case "service":
      return { service: { name: target.key, port: target.port } };
    case "routeGroup":
      return { routeGroup: target.name };
    case "invalid":
      return { invalid: null };
    default:
      return named ? { backend: key } : { inlineBackend: targetText(target) };
  }
}

function dumpBackend(name: string, target: Target): Json {
  if (target.type === "dynamic") return { dynamic: { name, namespace: "", target: target.expression ?? null } };
  if (target.type === "internal") return { internal: { name, namespace: "", path: target.path } };
  return { host: { name, namespace: "", target: targetText(target) } };
}

function targetText(target: Target): string {
  switch (target.type) {
    case "static":
    case "unix":
      return targetName(target);
    case "dynamic":
      return target.expression === undefined ? "dynamic" : `dynamic: ${target.expression}`;
    case "internal":
      return `internal: ${target.path}`;
    default:
      return target.type;
  }
}

/** One element of `endpoints` for each bucket of near and far workloads; workloads that get no requests are in the last. */
function dumpService(service: Service, live: Context): Json {
  const key = `${service.namespace}/${service.hostname}`;
  const workloads = live.ir.workloads.filter((workload) => workload.services[key] !== undefined);
  const buckets = localityBuckets(service, workloads, live.place);
  const unused = workloads.filter((workload) => !buckets.some((bucket) => bucket.includes(workload)));
  const shown = [...buckets.slice(0, -1), [...(buckets.at(-1) ?? []), ...unused]];
  const all = [...live.endpoints.values()];
  return {
    ...service,
    endpoints: shown.map((bucket) => sortOut(bucket.flatMap((workload) => dumpWorkload(workload, service, all)))),
  };
}

/** One entry, or one for each address where there are several; what differs in TLS alone is taken together. */
function dumpWorkload(workload: Workload, service: Service, known: readonly EndpointStats[]): DumpedEndpoint[] {
  const { uid, status, capacity, workloadIps, hostname } = workload;
  const serviceKey = `${service.namespace}/${service.hostname}`;
  const port = workload.services[serviceKey];
  const shown = { endpoint: { workloadUid: uid, port, status }, capacity };
  const hosts = workloadIps.length > 0 ? workloadIps : [hostname ?? ""];
  const ports = Object.values({ ...service.ports, ...port });
  return hosts.map((host) => {
    const targets = new Set(ports.map((each) => targetName({ host, port: each })));
    const stats = known.filter((each) => each.key.startsWith(`${uid} `) && targets.has(each.target));
    return {
      key: hosts.length === 1 ? `${uid}:${serviceKey}` : `${uid}:${serviceKey}:${host}`,
      shown,
      stats: stats.length === 0 ? undefined : stats.reduce(combineStats),
    };
  });
}

/** The one endpoint of a static backend, in the shape of a service's endpoints. */
function endpoint({ key, target, policies }: Pick<RouteBackend, "key" | "target" | "policies">, live: Context): Json {
  if (target.type !== "static" && target.type !== "unix") return {};
  const shared = live.endpoints.get(endpointKey({ ...target, ...connectionOf(policies, live.ir) }, 1));
  // Other backends may send to the same endpoint: the count is this backend's own.
  const stats = shared === undefined ? undefined : { ...shared, total: live.calls.get(key) ?? 0 };
  return { endpoints: [sortOut([{ key: targetName(target), shown: { capacity: 1 }, stats }])] };
}

interface DumpedEndpoint {
  readonly key: string;
  readonly shown: Json;
  /** undefined: no worker uses it yet. */
  readonly stats: EndpointStats | undefined;
}

/** Those that are evicted are `rejected`. */
function sortOut(endpoints: readonly DumpedEndpoint[]): Json {
  const active: Record<string, unknown> = {};
  const rejected: Record<string, unknown> = {};
  for (const { key, shown, stats } of endpoints) {
    const place = (stats?.evictedMs ?? null) === null ? active : rejected;
    place[key] = { ...shown, info: endpointInfo(stats) };
  }
  return { active, rejected };
}

/** Field names and units of reference 3.28. An endpoint that no worker uses yet is healthy and unused. */
function endpointInfo(stats: EndpointStats | undefined): Json {
  const evictedMs = stats?.evictedMs ?? null;
  return {
    health: stats?.health ?? 1,
    requestLatency: stats?.latency ?? 0,
    pendingRequests: stats?.pending ?? 0,
    totalRequests: stats?.total ?? 0,
    consecutiveFailures: stats?.consecutiveFailures ?? 0,
    timesEjected: stats?.timesEjected ?? 0,
    evictedUntil: evictedMs === null ? null : `${(evictedMs / 1000).toFixed(2)}s`,
  };
}

function inline(policies: PolicySet, live: Context): Json {
  const list = Object.entries(policies).map(([kind, value]) => ({ [kind]: shownPolicy(kind, value, live.hidden) }));
  return list.length > 0 ? { inlinePolicies: list } : {};
}

/** The phase of a targeted policy stands beside its kind. */
function shownPart(key: string, value: unknown, { hidden }: Context): unknown {
  return key === "phase" ? value : shownPolicy(key, value, hidden);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}

function mapValues(object: Json, map: (value: unknown, key: string) => unknown): Json {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

function byKey<T extends { readonly key: string }>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}
