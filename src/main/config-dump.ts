import { formatHostPort } from "../base/listen-address.ts";
import type { Bind, Ir, Listener, PathMatch, Route, RouteBackend, TcpRoute, ValueMatch } from "../ir/ir.ts";
import { redactPolicy } from "../policies/redact.ts";
import { REDACTED } from "../trace/redaction.ts";
import { targetName } from "../upstream/pool-target.ts";
import type { Target } from "../upstream/target.ts";
import { EndpointsDump, type LiveEndpoints } from "./endpoints-dump.ts";
import { shownFrontend } from "./frontend-dump.ts";

type Json = Readonly<Record<string, unknown>>;

/** What a dump shows, and hides, besides the configuration. */
export interface Live extends LiveEndpoints {
  /** Real ports by bind key. */
  readonly ports: Readonly<Record<string, number>>;
  /** Names (lower-case) of headers whose values are secrets. */
  readonly hidden: ReadonlySet<string>;
}

/** The configuration in force as `GET /config_dump` shows it (reference 4.4), without `config` and `version`. */
export function dumpIr(ir: Ir, live: Live): Json {
  const endpoints = new EndpointsDump(ir, live);
  return {
    backends: dumpBackends(ir, live, endpoints),
    binds: byKey(ir.binds).map((bind) => dumpBind(bind, live)),
    policies: byKey(ir.targeted).map(({ key, name, target, policy }) => ({
      key,
      name,
      target,
      policy: mapValues(policy, (part, role) =>
        isObject(part) ? mapValues(part, (value, kind) => shownPart(role, kind, value, live)) : part,
      ),
    })),
    routes: {
      routeGroups: Object.fromEntries(
        ir.routeGroups.map((group) => [
          group.name,
          Object.fromEntries(byKey(group.routes).map((r) => [r.key, dumpRoute(r, live)])),
        ]),
      ),
    },
    services: ir.services.map((service) => endpoints.service(service)),
    workloads: ir.workloads.map((workload) => ({ ...workload })),
  };
}

/** Named backends, and those that stand in routes: all that requests are sent to, besides services. */
function dumpBackends(ir: Ir, live: Live, endpoints: EndpointsDump): Json[] {
  const listeners = ir.binds.flatMap((bind) => bind.listeners);
  const routes = [...listeners, ...ir.routeGroups].flatMap((owner): readonly (Route | TcpRoute)[] => owner.routes);
  routes.push(...listeners.flatMap(({ tcpRoutes }) => tcpRoutes));
  const used = Map.groupBy(
    routes.flatMap((route) => route.backends),
    ({ key }) => key,
  );
  const named = new Set(ir.backends.map(({ key }) => key));
  const inRoutes = [...used.values()].flatMap((uses) =>
    uses.filter(({ key, target }) => !named.has(key) && stored(target)),
  );
  return byKey([...ir.backends, ...inRoutes]).map((backend) => ({
    backend: dumpBackend(backend.key.slice(1), backend.target),
    ...endpoints.backend([backend, ...(used.get(backend.key) ?? [])]),
    ...(named.has(backend.key) && inline(backend, live)),
  }));
}

function dumpBind(bind: Bind, live: Live): Json {
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

function dumpListener(listener: Listener, live: Live): Json {
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
  };
}

function dumpRoute(route: Route, live: Live): Json {
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
    ...inline(route, live),
  };
}

function dumpTcpRoute(route: TcpRoute, live: Live): Json {
  const { key, name, namespace, ruleName, hostnames } = route;
  return {
    key,
    name,
    namespace,
    ...(ruleName !== undefined && { ruleName }),
    ...(hostnames.length > 0 && { hostnames }),
    backends: route.backends.map((backend) => ({
      weight: backend.weight,
      // Wrapped once more than in HTTP routes, as in the reference.
      backend: dumpTarget(backend),
      ...inline(backend, live),
    })),
  };
}

function dumpPath(path: PathMatch): Json {
  return { [path.type]: path.value };
}

/** What a secret is compared with is a secret. */
function dumpHeader(header: ValueMatch, live: Live): Json {
  return dumpValue(live.hidden.has(header.name.toLowerCase()) ? { ...header, value: REDACTED } : header);
}

function dumpValue({ name, type, value }: ValueMatch): Json {
  return { name, value: { [type]: value } };
}

function dumpRouteBackend(backend: RouteBackend, live: Live): Json {
  return { weight: backend.weight, ...dumpTarget(backend), ...inline(backend, live) };
}

/** What is neither a backend of its own nor an entry of `backends` is shown where it is referred to. */
function dumpTarget({ key, target }: RouteBackend): Json {
  switch (target.type) {
    case "service":
      return { service: { name: target.key, port: target.port } };
    case "routeGroup":
      return { routeGroup: target.name };
    case "invalid":
      return { invalid: null };
    default:
      return { backend: key };
  }
}

function stored({ type }: Target): boolean {
  return type !== "service" && type !== "routeGroup" && type !== "invalid";
}

function dumpBackend(name: string, target: Target): Json {
  if (target.type === "dynamic") return { dynamic: { name, namespace: "", target: target.expression ?? null } };
  if (target.type === "internal") return { internal: { name, namespace: "", path: target.path } };
  return { host: { name, namespace: "", target: targetText(target) } };
}

function targetText(target: Target): string {
  return target.type === "static" || target.type === "unix" ? targetName(target) : target.type;
}

/** What stands at a place itself; what is attached to it from elsewhere is listed where it stands. */
function inline(place: Pick<Route, "policies" | "inline">, live: Live): Json {
  const list = Object.entries(place.inline ?? place.policies).map(([kind, value]) => ({
    [kind]: redactPolicy(kind, value, live.hidden),
  }));
  return list.length > 0 ? { inlinePolicies: list } : {};
}

/** `role` is `frontend`, `traffic` or `backend`; in `traffic` the phase stands beside the kind. */
function shownPart(role: string, key: string, value: unknown, { hidden }: Live): unknown {
  if (role === "frontend") return shownFrontend(key, value, hidden);
  return key === "phase" ? value : redactPolicy(key, value, hidden);
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
