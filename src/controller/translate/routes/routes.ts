/**
 * Routes at the listeners that they attach to. A route is one query: a route that changes recomputes no other one. Services are
 * referred to by key, so endpoints that come and go recompute no route.
 */
import { nameOfKey, objectKey } from "../../../base/object-key.ts";
import type { Route, RouteBackend, TcpRoute } from "../../../ir/ir.ts";
import { type PolicyLevel, recorded } from "../../../ir/origins.ts";
import { type ObjectRef, refKey, refOf } from "../../../kube/keys.ts";
import type { KubeObject, ParentReference } from "../../../kube/objects.ts";
import { kindsOf, mergeLevels, NO_LEVEL } from "../../../policies/merge.ts";
import type { PolicySet, SetKey } from "../../../policies/policy-set.ts";
import { withoutHttp } from "../../../translation/route-policies.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import { type Referrer, resolveBackend } from "../backends/backend-refs.ts";
import { retryBudgetOf, sessionOfBackends } from "../backends/backend-traffic.ts";
import { gatewayModel } from "../listeners/gateways.ts";
import { Findings, routeConditions } from "../model/findings.ts";
import {
  type Attachment,
  type GatewayRouteKind,
  HTTP_KINDS,
  type ListenerModel,
  type ParentModel,
  type RouteKind,
  type RouteModel,
} from "../model/model.ts";
import { createdAt } from "../model/precedence.ts";
import { listenerTargets, mergeAttached } from "../policy/policies.ts";
import { type Attaching, attach } from "./attach.ts";
import { redirectAt } from "./filters.ts";
import { translateGrpcRule } from "./grpc-rules.ts";
import { MISSING_FILTER, type Rule, type RuleBackend, translateHttpRule } from "./http-rules.ts";
import { ingressModel } from "./ingress-rules.ts";

const NO_ROUTE: RouteModel = { parents: [], services: [] };

/** A route with its parents; the key is its `refKey`. A route that does not exist has no parents. */
export const routeModel = defineQuery<RouteModel>("routeModel", (read, key) => {
  const ref = refOf<RouteKind>(key);
  if (ref.kind === "Ingress") return ingressRoute(read, objectKey(ref));
  const { kind, namespace } = ref as ObjectRef<GatewayRouteKind>;
  const found = RULES[kind](read, objectKey(ref));
  if (found === undefined) return NO_ROUTE;
  const { route, rules, findings, hostnames } = found;
  const served = rules.flatMap((rule) => withoutInvalid(rule, findings) ?? []);
  const translation: Translation = { read, kind, route, rules: served };
  const parents = (route.spec.parentRefs ?? []).flatMap((parentRef): ParentModel[] => {
    const attaching = attach(read, { kind, namespace, hostnames }, parentRef);
    if (attaching === undefined) return [];
    const conditions = routeConditions(attaching.condition, findings, rules);
    // Also of a route without a valid rule: its requests must not reach backends by a wider one, past its filters and policies.
    const attachments = served.length > 0 ? attaching.listeners.map((each) => attachTo(translation, each)) : [];
    const { gateway } = attaching;
    return [{ parentRef, ...(gateway !== undefined && { gateway }), conditions, attachments }];
  });
  return { parents, services: serviceKeysOf(parents) };
});

/** An Ingress attaches to the Gateway of its class, each host by itself. It has no conditions. */
function ingressRoute(read: Read, key: string): RouteModel {
  const model = read.query(ingressModel, key);
  const route = read.get("Ingress", key);
  if (model?.gateway === undefined || route === undefined) return NO_ROUTE;
  const { namespace } = route.metadata;
  const parentRef: ParentReference = nameOfKey(model.gateway);
  const attachments = model.hosts.flatMap(({ host, rules }) => {
    const hostnames = host === "" ? [] : [host];
    const attaching = attach(read, { kind: "Ingress", namespace, hostnames }, parentRef);
    // Not the host that both share: at the listener of one host, a rule for any host would compete with those for that host.
    return (attaching?.listeners ?? []).map(({ listener }) =>
      attachTo({ read, kind: "Ingress", route, rules }, { listener, hostnames }),
    );
  });
  const parents = [{ parentRef, gateway: model.gateway, conditions: [], attachments }];
  return { parents, services: serviceKeysOf(parents) };
}

/** An invalid rule responds with 500 to the requests that its valid matches select. undefined: it has no valid match. */
function withoutInvalid(rule: Rule, { invalid }: Findings): Rule | undefined {
  if (!invalid.some(({ index }) => index === rule.index)) return rule;
  if (rule.matches.length === 0) return undefined;
  return { ...rule, policies: NO_LEVEL, backends: [{ ...MISSING_FILTER, at: [] }] };
}

interface RouteObject extends KubeObject {
  readonly spec: { readonly rules?: readonly unknown[] };
}

interface Found {
  readonly route: RouteObject & { readonly spec: { readonly parentRefs?: readonly ParentReference[] } };
  readonly rules: readonly Rule[];
  readonly findings: Findings;
  /** Lower-case. */
  readonly hostnames: readonly string[];
}

/** How the rules of each kind are translated. */
const RULES: { readonly [Kind in GatewayRouteKind]: (read: Read, key: string) => Found | undefined } = {
  HTTPRoute: (read, key) => {
    const route = read.get("HTTPRoute", key);
    return route && translate(read, route, route.spec.hostnames, route.spec.rules ?? [{}], translateHttpRule);
  },
  GRPCRoute: (read, key) => {
    const route = read.get("GRPCRoute", key);
    return route && translate(read, route, route.spec.hostnames, route.spec.rules ?? [{}], translateGrpcRule);
  },
  TLSRoute: (read, key) => {
    const route = read.get("TLSRoute", key);
    return route && translate(read, route, route.spec.hostnames, route.spec.rules ?? [], translateConnectionRule);
  },
  TCPRoute: (read, key) => {
    const route = read.get("TCPRoute", key);
    return route && translate(read, route, [], route.spec.rules ?? [], translateConnectionRule);
  },
  UDPRoute: (read, key) => {
    const route = read.get("UDPRoute", key);
    return route && translate(read, route, [], route.spec.rules ?? [], translateConnectionRule);
  },
};

function translate<R>(
  read: Read,
  route: Found["route"] & { readonly kind: GatewayRouteKind },
  hostnames: readonly string[] | undefined,
  rules: readonly R[],
  translateRule: (rule: R, index: number, referrer: Referrer) => Rule,
): Found {
  const findings = new Findings();
  const referrer = { read, kind: route.kind, namespace: route.metadata.namespace, findings };
  return {
    route,
    rules: rules.map((rule, index) => translateRule(rule, index, referrer)),
    findings,
    hostnames: (hostnames ?? []).map((hostname) => hostname.toLowerCase()),
  };
}

/** A rule of connections or UDP sessions. */
function translateConnectionRule({ name, backendRefs = [] }: ConnectionRule, index: number, referrer: Referrer): Rule {
  const backends = backendRefs.map((ref, i): RuleBackend => {
    const backend = resolveBackend(referrer, ref, `rules[${index}].backendRefs[${i}]`);
    return { ...backend, weight: ref.weight ?? 1, filters: NO_LEVEL };
  });
  return { index, ...(name !== undefined && { name }), matches: [], policies: NO_LEVEL, backends };
}

interface ConnectionRule {
  readonly name?: string;
  readonly backendRefs?: readonly Parameters<typeof resolveBackend>[1][];
}

interface Translation {
  readonly read: Read;
  readonly kind: RouteKind;
  readonly route: RouteObject;
  /** The valid rules. */
  readonly rules: readonly Rule[];
}

function attachTo(translation: Translation, { listener, hostnames }: Attaching["listeners"][number]): Attachment {
  const { kind, route, rules } = translation;
  const { namespace, name } = route.metadata;
  const object = { kind, namespace, name };
  const isHttp = HTTP_KINDS.has(kind);
  const places = rules.map((rule): Place => {
    const number = String(rule.index).padStart(2, "0");
    return {
      ...translation,
      listener,
      rule,
      common: {
        key: `${namespace}/${name}.${number}.${SUFFIXES[kind]}`,
        name,
        namespace,
        ...(rule.name !== undefined && { ruleName: rule.name }),
        // A route without rules has one for all requests.
        origin: {
          object,
          path: rule.at ?? (route.spec.rules === undefined ? ["spec"] : ["spec", "rules", rule.index]),
        },
        createdAt: createdAt(route),
        hostnames,
      },
    };
  });
  return {
    listener: listener.key,
    routes: isHttp ? places.map(httpRouteAt) : [],
    tcpRoutes: isHttp ? [] : places.map(connectionRouteAt),
  };
}

const SUFFIXES: Readonly<Record<RouteKind, string>> = {
  HTTPRoute: "http",
  GRPCRoute: "grpc",
  TLSRoute: "tls",
  TCPRoute: "tcp",
  UDPRoute: "udp",
  Ingress: "ingress",
};

/** A rule at a listener. */
interface Place extends Translation {
  readonly listener: ListenerModel;
  readonly rule: Rule;
  readonly common: Pick<Route, "key" | "name" | "namespace" | "ruleName" | "origin" | "createdAt" | "hostnames">;
}

function httpRouteAt(place: Place): Route {
  const { read, rule, listener, common } = place;
  const { set, sources } = rule.policies;
  const written = writtenOf(rule.policies);
  const { requestRedirect: redirect } = written;
  const atListener = redirect && { requestRedirect: redirectAt(redirect, listener) };
  const own = { set: atListener ? { ...set, ...atListener } : set, sources };
  // Session settings of a backend apply to all routes, so those of the route itself win (GEP-1619, API attachment points).
  const levels = [...listenerTargets(listener), sessionOfBackends(read, rule.backends), ...routeTargets(place)];
  const merged = mergeAttached(read, "route", levels, own);
  return {
    ...common,
    matches: rule.matches,
    ...recorded(merged, atListener ? { ...written, ...atListener } : written),
    backends: rule.backends.map((backend, i) => backendAt(place, backend, i)),
  };
}

/** Without the TracegatePolicies among its filters. */
function writtenOf({ set, sources }: PolicyLevel): PolicySet {
  if (kindsOf(set).every((kind) => sources[kind]?.[0]?.in === undefined)) return set;
  return Object.fromEntries(Object.entries(set).filter(([kind]) => sources[kind as SetKey]?.[0]?.in === undefined));
}

function connectionRouteAt(place: Place): TcpRoute {
  return { ...place.common, backends: place.rule.backends.map((backend, i) => backendAt(place, backend, i)) };
}

/** The route and its rule, as policies mean them. */
function routeTargets({ kind, route, rule }: Place): readonly string[] {
  const { namespace, name } = route.metadata;
  return [
    refKey({ kind, namespace, name }),
    ...(rule.name === undefined ? [] : [refKey({ kind, namespace, name, section: rule.name })]),
  ];
}

function backendAt(
  place: Place,
  { target, weight, at, policies, targets, filters, backend }: RuleBackend,
  index: number,
): RouteBackend {
  const { read, kind, listener } = place;
  const around = [...listenerTargets(listener), ...routeTargets(place), ...targets];
  const own = mergeLevels(retryBudgetOf(read, targets[0]), policies, filters);
  const merged = mergeAttached(read, "backend", around, own);
  const settled = settle(merged, kind, listener, read);
  return {
    key: `/${backend ?? `${place.common.key}/backend${index}`}`,
    weight,
    ...(at !== undefined && { at }),
    target,
    ...recorded(settled, writtenOf(filters)),
  };
}

/** What the kind of the route, the listener and the Gateway say about connections to backends. */
function settle(level: PolicyLevel, kind: RouteKind, listener: ListenerModel, read: Read): PolicyLevel {
  const usable = HTTP_KINDS.has(kind) ? level.set : withoutHttp(level.set);
  const { backendTLS, http, ...others } = usable;
  const tls = listener.tls === "passthrough" ? undefined : withCertificate(backendTLS, listener, read);
  const version = http?.version ?? (kind === "GRPCRoute" ? "HTTP/2.0" : undefined);
  if (tls === backendTLS && version === http?.version) return { ...level, set: usable };
  const set = {
    ...others,
    ...(tls !== undefined && { backendTLS: tls }),
    ...(version !== undefined && { http: { ...http, version } }),
  };
  return { set, sources: { http: [{ at: [] }], ...level.sources } };
}

/** The client certificate of the Gateway, unless there is another one (GatewayBackendTLS.clientCertificateRef). */
function withCertificate(
  tls: PolicySet["backendTLS"],
  { gateway }: ListenerModel,
  read: Read,
): PolicySet["backendTLS"] {
  const certificate = read.query(gatewayModel, gateway)?.clientCertificate;
  return tls === undefined || tls.cert !== undefined || certificate === undefined ? tls : { ...tls, ...certificate };
}

/** Keys of the services that are called: backends, and services of policies such as mirrors. */
function serviceKeysOf(parents: readonly ParentModel[]): readonly string[] {
  const keys = new Set<string>();
  for (const { attachments } of parents)
    for (const { routes, tcpRoutes } of attachments)
      for (const route of [...routes, ...tcpRoutes]) collectServiceKeys(route, keys);
  return [...keys].sort();
}

/** Adds the keys of all services that a part of the IR has among its targets. */
export function collectServiceKeys(part: unknown, keys: Set<string>): void {
  if (typeof part !== "object" || part === null) return;
  if ("type" in part && part.type === "service" && "key" in part && typeof part.key === "string") keys.add(part.key);
  for (const each of Object.values(part)) collectServiceKeys(each, keys);
}
