import { formatDuration, withDurations } from "../base/durations.ts";
import { type Fields, isObject } from "../base/fields.ts";
import { formatHostPort, type ListenAddress } from "../base/listen-address.ts";
import { formatOrigin, type Origin } from "../base/origin.ts";
import type { Path } from "../base/paths.ts";
import { REDACTED, SECRET_PARAMETERS } from "../base/redaction.ts";
import type { Settings, XdsSettings } from "../config/settings.ts";
import { formatBindAddresses } from "../ir/bind-addresses.ts";
import type {
  AccessLog,
  Backend,
  Bind,
  Collector,
  Ir,
  Listener,
  PathMatch,
  Route,
  RouteBackend,
  TargetedPolicy,
  TcpRoute,
  Tracing,
  ValueMatch,
} from "../ir/ir.ts";
import { type Containers, originOfBackend, originsOf } from "../ir/origins.ts";
import { redactCalling } from "../policies/calls/redact.ts";
import { isShadowKey, writtenKind } from "../policies/contract/shadow.ts";
import { redactAuthz } from "../policies/ext-authz/index.ts";
import type { NetworkExtAuthz } from "../policies/ext-authz/network-schema.ts";
import { redactPolicy } from "../policies/registry.ts";
import { redactTcp } from "../policies/upstream-settings/index.ts";
import type { FrontendInput } from "../translation/schema/frontend.ts";
import { isPool } from "../upstream/discovery/discovery.ts";
import { targetName } from "../upstream/settings/pool-target.ts";
import type { Target } from "../upstream/settings/target.ts";
import { backendsOf, type UsedBackend } from "./backend-uses.ts";
import { EndpointsDump, type LiveEndpoints } from "./endpoints-dump.ts";

/** The live state that a dump shows besides the configuration. */
export interface Live extends LiveEndpoints {
  /** Real ports by bind key. */
  readonly ports: Readonly<Record<string, number>>;
  /** Names (lower-case) of headers whose values are secrets. */
  readonly hidden: ReadonlySet<string>;
}

/** What each part of a dump is made with, besides the part itself. */
export interface DumpContext extends Pick<Live, "hidden" | "ports"> {
  /** What the origins of policies name. */
  readonly containers: Containers;
}

/** The configuration in effect as `GET /config_dump` shows it (reference 4.4), without `config` and `version`. */
export function dumpIr(ir: Ir, live: Live): Fields {
  const endpoints = new EndpointsDump(ir, live);
  const { hidden, ports } = live;
  const context = { hidden, ports, containers: ir };
  return {
    backends: dumpBackends(ir, context, endpoints),
    binds: byKey(ir.binds).map((bind) => dumpBind(bind, context)),
    policies: byKey(ir.targeted).map((policy) => dumpTargeted(policy, hidden)),
    routes: {
      routeGroups: Object.fromEntries(
        ir.routeGroups.map((group) => [
          group.name,
          Object.fromEntries(byKey(group.routes).map((r) => [r.key, dumpRoute(r, context)])),
        ]),
      ),
    },
    services: ir.services.filter((each) => !isPool(each)).map((service) => endpoints.service(service)),
    workloads: ir.workloads.filter((each) => !isPool(each)).map((workload) => ({ ...workload })),
  };
}

/** An entry of `policies[]`, or a policy of Kubernetes. */
export function dumpTargeted(
  { key, name, target, inheritance, policy, origin }: TargetedPolicy,
  hidden: ReadonlySet<string>,
): Fields {
  return {
    key,
    name,
    target,
    ...(inheritance !== undefined && { inheritance }),
    ...dumpOrigin(origin),
    policy: mapValues(policy, (part, role) => (isObject(part) ? dumpRole(role, part, hidden) : part)),
  };
}

/** Named backends and those defined in routes; services have their own list. */
function dumpBackends(ir: Ir, context: DumpContext, endpoints: EndpointsDump): Fields[] {
  return backendsOf(ir).flatMap((used) => {
    if (!used.isNamed && !stored(used.backend.target)) return [];
    return [dumpUsed(used, context, endpoints)];
  });
}

/** A backend with its endpoints. */
export function dumpUsed(
  { backend, isNamed, uses }: UsedBackend,
  context: DumpContext,
  endpoints: EndpointsDump,
): Fields {
  const { origin } = backend;
  return {
    backend: dumpBackend(backend),
    ...dumpOrigin(origin),
    ...endpoints.backend([backend, ...uses]),
    ...(isNamed && inline(backend, origin, ["policies"], context)),
  };
}

function dumpBind(bind: Bind, context: DumpContext): Fields {
  return {
    ...dumpBindHead(bind, context),
    listeners: Object.fromEntries(
      byKey(bind.listeners).map((listener) => [listener.key, dumpListener(listener, context)]),
    ),
  };
}

/** A bind without its listeners. */
export function dumpBindHead(bind: Bind, context: DumpContext): Fields {
  return {
    key: bind.key,
    address: formatBindAddresses(bind, context.ports[bind.key] ?? bind.port),
    protocol: bind.protocol,
    tunnelProtocol: bind.tunnelProtocol,
    mode: bind.mode,
    ...dumpOrigins(bind.frontend.origins ?? {}),
  };
}

function dumpListener(listener: Listener, context: DumpContext): Fields {
  const tcp = listener.protocol !== "HTTP" && listener.protocol !== "HTTPS";
  return {
    ...dumpListenerHead(listener),
    ...(!tcp && {
      routes: Object.fromEntries(byKey(listener.routes).map((route) => [route.key, dumpRoute(route, context)])),
    }),
    ...(tcp && {
      tcpRoutes: Object.fromEntries(byKey(listener.tcpRoutes).map((r) => [r.key, dumpTcpRoute(r, context)])),
    }),
  };
}

/** A listener without its routes. */
export function dumpListenerHead(listener: Listener): Fields {
  const secure = listener.protocol === "HTTPS" || listener.protocol === "TLS";
  const made = listener.tls?.dynamicCa !== undefined;
  const source = listener.acme !== undefined ? "Acme" : made ? "DynamicCa" : "Static";
  const certificateSource = listener.tls === undefined ? null : { certificateSource: source };
  return {
    key: listener.key,
    gatewayName: listener.gatewayName,
    gatewayNamespace: listener.gatewayNamespace,
    listenerName: listener.name,
    listenerSet: null,
    hostname: listener.hostname,
    ...dumpOrigin(listener.origin),
    protocol: secure ? { [listener.protocol]: certificateSource } : listener.protocol,
  };
}

export function dumpRoute(route: Route, context: DumpContext): Fields {
  return {
    key: route.key,
    name: route.name,
    namespace: route.namespace,
    ...(route.ruleName !== undefined && { ruleName: route.ruleName }),
    ...dumpOrigin(route.origin),
    ...(route.hostnames.length > 0 && { hostnames: route.hostnames }),
    matches: route.matches.map((match) => ({
      path: dumpPath(match.path),
      ...(match.method !== undefined && { method: match.method }),
      ...(match.headers.length > 0 && { headers: match.headers.map((header) => dumpHeader(header, context)) }),
      ...(match.query.length > 0 && { query: match.query.map(dumpParameter) }),
    })),
    backends: route.backends.map((backend, i) => ({
      weight: backend.weight,
      ...dumpTarget(backend),
      ...dumpOrigin(originOfBackend(route.origin, i, backend.at)),
      ...inline(backend, route.origin, ["backends", i, "policies"], context),
    })),
    ...inline(route, route.origin, ["policies"], context),
  };
}

export function dumpTcpRoute(route: TcpRoute, context: DumpContext): Fields {
  const { key, name, namespace, ruleName, hostnames, origin } = route;
  return {
    key,
    name,
    namespace,
    ...(ruleName !== undefined && { ruleName }),
    ...dumpOrigin(origin),
    ...(hostnames.length > 0 && { hostnames }),
    backends: route.backends.map((backend, i) => ({
      weight: backend.weight,
      // Wrapped once more than in HTTP routes, as in the reference.
      backend: dumpTarget(backend),
      ...dumpOrigin(originOfBackend(origin, i, backend.at)),
      ...inline(backend, origin, ["backends", i, "policies"], context),
    })),
  };
}

function dumpPath(path: PathMatch): Fields {
  return { [path.type]: path.value };
}

/** A value that a secret header or parameter is compared with is also secret. */
function dumpHeader(header: ValueMatch, context: DumpContext): Fields {
  return dumpValue(context.hidden.has(header.name.toLowerCase()) ? { ...header, value: REDACTED } : header);
}

function dumpParameter(parameter: ValueMatch): Fields {
  return dumpValue(SECRET_PARAMETERS.has(parameter.name) ? { ...parameter, value: REDACTED } : parameter);
}

function dumpValue({ name, type, value }: ValueMatch): Fields {
  return { name, value: { [type]: value } };
}

/** A service, route group or invalid target has no entry in `backends`, so it is shown in the reference itself. */
function dumpTarget({ key, target }: RouteBackend): Fields {
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

/** Backends of a configuration file, and those defined in routes, have their key as a name and no namespace. */
function dumpBackend({ key, target, ...named }: Backend | RouteBackend): Fields {
  const { name, namespace } = "namespace" in named ? named : { name: key.slice(1), namespace: "" };
  if (target.type === "dynamic") return { dynamic: { name, namespace, target: target.expression ?? null } };
  if (target.type === "pool") return { pool: { name, namespace } };
  if (target.type === "internal") return { internal: { name, namespace, path: target.path } };
  const { dns } = target.type === "static" ? target : {};
  return { host: { name, namespace, target: targetText(target), ...(dns && { dns: withDurations(dns, "minTtl") }) } };
}

function targetText(target: Target): string {
  return target.type === "static" || target.type === "unix" ? targetName(target) : target.type;
}

interface Place extends Pick<Route, "policies" | "sources" | "inline"> {}

/**
 * The policies that an object contains (targeted policies are listed in `policies`), and where those in effect were written if that is
 * elsewhere too. `own`: the field of `around` with the policies of the object.
 */
function inline(place: Place, around: Origin | undefined, own: Path, { hidden, containers }: DumpContext): Fields {
  const list = Object.entries(place.inline ?? place.policies).map(([kind, value]) => dumpPolicy(kind, value, hidden));
  const found = Object.entries(originsOf(place, around, own, containers));
  const elsewhere = Object.fromEntries(found.filter(([kind]) => kind in (place.sources ?? {})));
  return { ...(list.length > 0 && { inlinePolicies: list }), ...dumpOrigins(elsewhere) };
}

/** Where policies in effect were written, by their kinds. */
function dumpOrigins(origins: Readonly<Record<string, readonly Origin[]>>): Fields {
  const list = Object.entries(origins).map(([kind, found]) => {
    return { [writtenKind(kind)]: found.map(formatOrigin), ...shadowMark(kind) };
  });
  return list.length === 0 ? {} : { policyOrigins: list };
}

/** A policy as it was written, without secrets. */
function dumpPolicy(kind: string, value: unknown, hidden: ReadonlySet<string>): Fields {
  const shown = redactPolicy(kind, value, hidden);
  if (!isShadowKey(kind)) return { [kind]: shown };
  const marked = (each: unknown): unknown => (isObject(each) ? { ...each, ...shadowMark(kind) } : each);
  return { [writtenKind(kind)]: Array.isArray(shown) ? shown.map(marked) : marked(shown) };
}

function shadowMark(kind: string): { readonly shadow?: true } {
  return isShadowKey(kind) ? { shadow: true } : {};
}

function dumpOrigin(origin: Origin | undefined): Fields {
  return origin === undefined ? {} : { origin: formatOrigin(origin) };
}

/** `role` is `frontend`, `traffic` or `backend`; in `traffic` the phase is a key beside the kind. */
function dumpRole(role: string, part: Fields, hidden: ReadonlySet<string>): Fields {
  if (role === "frontend") return mapValues(part, (value, field) => redactFrontend(field, value, hidden));
  const { phase, ...kinds } = part;
  const policies: Record<string, unknown> = phase === undefined ? {} : { phase };
  for (const [kind, value] of Object.entries(kinds))
    for (const [written, shown] of Object.entries(dumpPolicy(kind, value, hidden))) {
      const { [written]: others } = policies;
      // Of the entries of one limit, some may be shadows.
      policies[written] = Array.isArray(others) && Array.isArray(shown) ? [...others, ...shown] : shown;
    }
  return policies;
}

function mapValues(object: Fields, map: (value: unknown, key: string) => unknown): Fields {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

function byKey<T extends { readonly key: string }>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

/** The fields of `frontendPolicies`. */
interface Frontend extends Omit<FrontendInput, "proxy" | "logging" | "networkExtAuthz" | "accessLog" | "tracing"> {
  readonly networkExtAuthz?: NetworkExtAuthz;
  readonly accessLog?: AccessLog;
  readonly tracing?: Tracing;
}

/** Each field has its own entry, so that a new field does not compile until its redaction is decided. */
type Redactors = {
  readonly [Field in keyof Frontend]-?: (config: NonNullable<Frontend[Field]>, hidden: ReadonlySet<string>) => unknown;
};

/** For fields with neither secrets nor times. */
const unchanged = (config: unknown): unknown => config;

const REDACTORS: Redactors = {
  accessLog: redactAccessLog,
  connect: unchanged,
  http: (http) =>
    withDurations(
      http,
      "http1IdleTimeout",
      "http2KeepaliveInterval",
      "http2KeepaliveTimeout",
      "headerReadTimeout",
      "streamIdleTimeout",
      "maxConnectionDuration",
    ),
  ipAccess: unchanged,
  networkAuthorization: unchanged,
  networkExtAuthz: redactAuthz,
  proxyProtocol: unchanged,
  tcp: redactTcp,
  tls: (tls) => withDurations(tls, "handshakeTimeout"),
  tracing: redactTracing,
  udp: (udp) => withDurations(udp, "idleTimeout"),
};

/** A field of `frontendPolicies` with secrets redacted and durations as text. An unknown field is redacted as a whole. */
function redactFrontend(field: string, config: unknown, hidden: ReadonlySet<string>): unknown {
  if (!Object.hasOwn(REDACTORS, field)) return REDACTED;
  const show = REDACTORS[field as keyof Redactors] as (config: unknown, hidden: ReadonlySet<string>) => unknown;
  return show(config, hidden);
}

/** Settings of exports as the configuration has them: beside the fields of the collector. */
function redactTracing({ collector, ...others }: Tracing, hidden: ReadonlySet<string>): unknown {
  return { ...redactCollector(collector, hidden), ...others };
}

function redactAccessLog({ otlp, ...own }: AccessLog, hidden: ReadonlySet<string>): unknown {
  if (otlp === undefined) return own;
  const { collector, filter, ...fields } = otlp;
  const { resources: _none, ...redacted } = redactCollector(collector, hidden);
  return { ...own, otlp: { ...redacted, ...(filter !== undefined && { filter }), fields } };
}

/** Headers that are added to exports are credentials, whatever their names. */
function redactCollector(collector: Collector, hidden: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  const { add = {}, set = {} } = collector.policies?.requestHeaderModifier ?? {};
  const names = [...Object.keys(add), ...Object.keys(set)].map((name) => name.toLowerCase());
  return redactCalling(collector, new Set([...hidden, ...names]));
}

/**
 * The startup settings as the dump shows them (reference 4.4), with the real addresses of the servers and the functions in
 * effect.
 */
export function dumpSettings(
  settings: Settings,
  { customFunctions = "" }: Ir,
  addresses: Readonly<Record<string, readonly string[]>>,
): Readonly<Record<string, unknown>> {
  const { keepalives, ...backend } = settings.backend;
  return {
    ipv6Enabled: settings.enableIpv6,
    terminationMaxDeadline: formatDuration(settings.terminationMaxDeadline),
    terminationMinDeadline: formatDuration(settings.terminationMinDeadline),
    numWorkerThreads: settings.workerThreads,
    adminAddr: dumpAddress(settings.adminAddr),
    statsAddr: dumpAddress(settings.statsAddr),
    readinessAddr: dumpAddress(settings.readinessAddr),
    listening: addresses,
    metrics: settings.metrics,
    logging: settings.logging,
    sensitiveHeaders: settings.sensitiveHeaders,
    dns: settings.dns,
    locality: settings.locality,
    backend: {
      keepalives: withDurations(keepalives, "time", "interval"),
      ...withDurations(backend, "connectTimeout", "poolIdleTimeout"),
    },
    overload: withDurations(settings.overload, "maxEventLoopLag"),
    expressions: withDurations(settings.expressions, "perRequest"),
    recorder: settings.recorder,
    dynamicCaCertCache: withDurations(settings.leafCaching, "ttl"),
    customFunctions,
    ...(settings.xds !== undefined && { xds: dumpXds(settings.xds) }),
  };
}

/** Paths, not contents: the token is a secret. */
function dumpXds({ address, rootCa, token, namespace, gateway }: XdsSettings): unknown {
  return { address, auth: token ?? null, caCert: rootCa ?? null, namespace, gateway };
}

/** As the reference writes it: `{"Localhost": [true, 15000]}`, `{"SocketAddr": "[::]:15020"}`, `"Off"`. */
function dumpAddress(address: ListenAddress): unknown {
  switch (address.type) {
    case "off":
      return "Off";
    case "unix":
      return { UnixSocket: address.path };
    case "localhost":
      return { Localhost: [true, address.port] };
    default:
      return { SocketAddr: formatHostPort(address.host, address.port) };
  }
}
