import { Networks } from "../../base/ip-address.ts";
import type { Logger } from "../../base/log.ts";
import { CelEnvironment } from "../../cel/index.ts";
import type { Bind, Ir, Listener, Route, RouteBackend, TcpRoute } from "../../ir/ir.ts";
import { digestAt, groupOwner, type PackedIr, type PackedRoutes, routeAt } from "../../ir/packed-ir.ts";
import { Rules } from "../../policies/authorization/rules.ts";
import { compileCallPolicies } from "../../policies/calls/compile.ts";
import { compilePolicies } from "../../policies/compile.ts";
import type { PolicyEnvironment, ThreadEnvironment } from "../../policies/contract/deps.ts";
import type { CalloutContext } from "../../policies/contract/types.ts";
import { NetworkAuthorizer, prepareNetworkAuthz } from "../../policies/ext-authz/network.ts";
import type { NetworkExtAuthz } from "../../policies/ext-authz/network-schema.ts";
import { callPoliciesOf, NO_POLICY_SET } from "../../policies/merge.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { CallPolicies } from "../../policies/schema/call.ts";
import { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { TicketSecrets } from "../../tls/ticket-keys.ts";
import type { TlsServer } from "../../tls/tls-settings.ts";
import { TlsTerminator } from "../../tls/tls-terminator.ts";
import { AffinityKey } from "../../upstream/balancers/rendezvous.ts";
import { Callout, NO_UPSTREAM } from "../../upstream/callouts/callout.ts";
import { OutlierDetector } from "../../upstream/calls/outlier.ts";
import {
  connectionOf,
  type Destination,
  Destinations,
  proxyService,
} from "../../upstream/destinations/destinations.ts";
import type { DynamicConnection } from "../../upstream/destinations/dynamic.ts";
import { DynamicTarget } from "../../upstream/destinations/dynamic.ts";
import type { ServiceIndex } from "../../upstream/discovery/discovery.ts";
import { withLocalityOfNode } from "../../upstream/discovery/locality.ts";
import type { Endpoint } from "../../upstream/endpoints/endpoint.ts";
import type { BackendCalls, Endpoints } from "../../upstream/endpoints/endpoints.ts";
import { checkIdentity, type HealthCheck } from "../../upstream/endpoints/health-check.ts";
import { RetryBudget } from "../../upstream/endpoints/retry-budget.ts";
import { settingsIdentity } from "../../upstream/settings/pool-target.ts";
import type { RetryBudgetSettings } from "../../upstream/settings/settings.ts";
import type { Target } from "../../upstream/settings/target.ts";
import { bodyCaptureOptions } from "../body/recorded-bodies.ts";
import { addGatewayFields } from "../fields/client-fields.ts";
import { Forwarding } from "../fields/forwarding.ts";
import { ListenerTable, TcpRouteTable } from "../match/hosts.ts";
import { type KnownRoute, type Router, RouterBuilder } from "../match/router.ts";
import type { Services } from "../services/services.ts";
import { LogExport } from "../telemetry/log-export.ts";
import { RequestTracing } from "../telemetry/request-tracing.ts";
import { AddressBook } from "./address-book.ts";
import type {
  CompiledBackend,
  CompiledBind,
  CompiledListener,
  CompiledRoute,
  CompiledTcpRoute,
  RetryLimits,
} from "./compiled.ts";
import { Provenance } from "./provenance.ts";
import { type FixedLabels, SeriesCache } from "./series-cache.ts";
import { type KnownCallout, Uses } from "./uses.ts";

/** One compiled configuration. */
export interface Generation {
  readonly generation: number;
  readonly binds: ReadonlyMap<string, CompiledBind>;
  /** Held as long as the generation exists; released afterwards. */
  readonly endpoints: readonly Endpoint[];
  readonly calls: ReadonlyMap<string, BackendCalls>;
  /** By the key of the budget. */
  readonly budgets: ReadonlyMap<string, RetryBudget>;
  readonly addresses: AddressBook;
  readonly destinations: Destinations;
  /** By the key of the listener. */
  readonly terminators: ReadonlyMap<string, KnownTerminator>;
  /** The functions that its routes were compiled with. */
  readonly customFunctions: string;
  /** For the next configuration to take over: by owner and labels, then by digest. */
  readonly routes: ReadonlyMap<string, KnownRoutes>;
}

type KnownRoutes = Map<string, KnownRoute<CompiledRoute>>;

interface KnownTerminator {
  /** Its settings and protocol, to compare. */
  readonly settings: string;
  readonly terminator: TlsTerminator;
}

interface Link {
  compiler: IrCompiler | undefined;
}

/** Where the routes of a listener or group go. */
interface Owner {
  readonly router: RouterBuilder<CompiledRoute>;
  readonly labels: FixedLabels;
  readonly known: KnownRoutes;
  /** Its routes in the configuration in effect. */
  readonly before: KnownRoutes | undefined;
}

export type CompilerServices = Pick<
  Services,
  "metrics" | "customLabels" | "policies" | "locality" | "exports" | "random" | "tickets"
>;

const UNROUTED: Omit<FixedLabels, "bind"> = {
  backend: "unknown",
  protocol: "http",
  gateway: "unknown",
  listener: "unknown",
  route: "unknown",
  route_rule: "unknown",
};

/**
 * Compiles a configuration. A step compiles one route or listener, or reads one address, so that requests are served in between; the caller
 * may stop after any step, and the generator then releases its resources. `before` is the configuration in effect.
 */
export function* compileIr(
  generation: number,
  configuration: PackedIr,
  services: CompilerServices,
  endpoints: Endpoints,
  before?: Generation,
): Generator<void, Generation> {
  const addresses = yield* AddressBook.reading(configuration.addresses, before?.addresses);
  const compiler = new IrCompiler(generation, configuration.frame, addresses, services, endpoints, before);
  let compiled: Generation | undefined;
  try {
    for (const routes of configuration.routes) yield* compiler.addRoutes(routes);
    compiled = yield* compiler.finish();
    return compiled;
  } finally {
    if (compiled === undefined) compiler.abandon();
  }
}

/** Takes all steps at once. */
export function inOneGo<Result>(steps: Generator<void, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Compiles the parts of one configuration. An unchanged route is taken over from the
 * configuration in effect, even if the endpoints of its services have changed: that costs 2 % of compiling it, and no route is in
 * memory twice.
 */
export class IrCompiler {
  readonly #metrics: Metrics;
  readonly #customLabels: Services["customLabels"];
  readonly #policies: PolicyEnvironment;
  readonly #exports: Services["exports"];
  readonly #random: Services["random"];
  readonly #tickets: TicketSecrets;
  readonly #endpoints: Endpoints;
  readonly #calls = new Map<string, BackendCalls>();
  readonly #budgets = new Map<string, RetryBudget>();
  readonly #ir: Ir;
  readonly #generation: number;
  readonly #addresses: AddressBook;
  readonly #services: ServiceIndex;
  /** The services of the configuration in effect. */
  readonly #servicesBefore: ServiceIndex | undefined;
  readonly #destinations: Destinations;
  readonly #callouts = new Map<string, KnownCallout>();
  readonly #owners = new Map<string, Owner>();
  readonly #routes = new Map<string, KnownRoutes>();
  readonly #terminators = new Map<string, KnownTerminator>();
  /** The terminators of the configuration in effect; unchanged ones keep their contexts and the sessions that clients resume. */
  readonly #terminatorsBefore: Generation["terminators"] | undefined;
  readonly #merged: CompiledBind["merged"] = new WeakMap();
  readonly #provenance: Provenance;
  /** What the whole configuration uses. */
  readonly #uses = new Uses();
  /** What the part that is being compiled uses. */
  #used = this.#uses;
  /** Collects what the next route uses. */
  #ofRoute = new Uses();
  /** Shared by all routes that use the same destination, or none, and nothing else. */
  readonly #ofDestination = new Map<Destination | undefined, Uses>();
  /** Cleared when the configuration is complete: a policy may keep its environment and outlive the configuration. */
  readonly #link: Link = { compiler: undefined };
  /** The environment of policies, which records what they use for the part that they belong to. */
  readonly #recording: PolicyEnvironment;

  /** Routes are added by `addRoutes`. `before` is the configuration in effect. */
  constructor(
    generation: number,
    ir: Ir,
    addresses: AddressBook,
    { metrics, customLabels, policies, locality, exports, random, tickets }: CompilerServices,
    endpoints: Endpoints,
    before?: Generation,
  ) {
    const callouts: PolicyEnvironment["callouts"] = (target, policies) => this.callout(target, policies);
    const { credentials, ownFields } = this.#uses;
    const environment = { ...policies, cel: CelEnvironment.defining(ir.customFunctions ?? "") };
    this.#policies = { ...environment, callouts, credentials, ownFields };
    this.#link.compiler = this;
    this.#recording = IrCompiler.#recordingIn(this.#link, environment);
    this.#exports = exports;
    this.#random = random;
    this.#tickets = tickets;
    this.#generation = generation;
    this.#ir = ir;
    this.#provenance = new Provenance(ir);
    this.#metrics = metrics;
    this.#customLabels = customLabels;
    this.#endpoints = endpoints;
    this.#addresses = addresses;
    this.#services = this.#addresses.index;
    this.#servicesBefore = before?.addresses.index;
    const place = withLocalityOfNode(locality, this.#addresses.workloads);
    this.#destinations = new Destinations(endpoints, this.#services, place, random, before?.destinations.former);
    this.#terminatorsBefore = before?.terminators;
    const reusable = before?.customFunctions === (ir.customFunctions ?? "") ? before.routes : undefined;
    const addOwner = (key: string, labels: FixedLabels): void => {
      const known: KnownRoutes = new Map();
      const name = `${key} ${JSON.stringify(labels)}`;
      this.#owners.set(key, { router: new RouterBuilder(), labels, known, before: reusable?.get(name) });
      this.#routes.set(name, known);
    };
    for (const bind of ir.binds)
      for (const listener of bind.listeners) addOwner(listener.key, listenerLabels(bind, listener));
    for (const group of ir.routeGroups) addOwner(groupOwner(group.name), { ...UNROUTED, bind: "unknown" });
  }

  /** Static, so that its result refers to the compiler only through the link. */
  static #recordingIn(link: Link, environment: ThreadEnvironment & Pick<PolicyEnvironment, "cel">): PolicyEnvironment {
    return {
      ...environment,
      callouts: (target, policies) => compilerOf(link).callout(target, policies),
      get credentials() {
        return compilerOf(link).#used.credentials;
      },
      get ownFields() {
        return compilerOf(link).#used.ownFields;
      },
    };
  }

  /** Adds a route in each step. */
  *addRoutes(routes: PackedRoutes): Generator<void, void> {
    const owner = this.#owners.get(routes.owner);
    if (owner === undefined) return;
    this.#provenance.add(routes, owner.known);
    for (let index = 0; index < routes.count; index++) {
      const digest = digestAt(routes, index);
      owner.known.set(digest, this.#takeOver(owner, digest) ?? this.#compileRoute(owner, routeAt(routes, index)));
      yield;
    }
  }

  /** The same route of the configuration in effect; undefined if it has changed or is new. */
  #takeOver({ router, before }: Owner, digest: string): KnownRoute<CompiledRoute> | undefined {
    const known = before?.get(digest);
    if (known === undefined) return undefined;
    const { backends, uses } = known.route;
    for (const proxy of uses.proxies)
      if (this.#servicesBefore?.isSame(proxy, this.#services.find(proxy)) !== true) return undefined;
    for (const destination of uses.destinations) this.#destinations.takeOver(destination);
    for (const { key, calls, retries } of backends) {
      this.#calls.set(key, calls);
      if (retries?.budget !== undefined) this.#budgets.set(retries.budget.key, retries.budget);
    }
    this.#addUses(uses);
    router.addKnown(known);
    return known;
  }

  #compileRoute({ router, labels }: Owner, route: Route): KnownRoute<CompiledRoute> {
    this.#used = this.#ofRoute;
    const compiled = this.#route(route, labels);
    this.#used = this.#uses;
    this.#addUses(compiled.uses);
    return router.add(route, compiled);
  }

  /** Adds `uses` to those of the whole configuration. Callouts are kept for routes that delegate, which are compiled later. */
  #addUses(uses: Uses): void {
    if (uses.destinationsOnly) return;
    this.#uses.include(uses);
    for (const [key, known] of uses.callouts) if (!this.#callouts.has(key)) this.#callouts.set(key, known);
  }

  /** What was recorded for the route that is being compiled. */
  #usesOfRoute(): Uses {
    const uses = this.#ofRoute;
    if (!uses.destinationsOnly || uses.destinations.size > 1) {
      this.#ofRoute = new Uses();
      return uses;
    }
    const [destination] = uses.destinations;
    uses.destinations.clear();
    let shared = this.#ofDestination.get(destination);
    if (shared === undefined) {
      shared = new Uses();
      if (destination !== undefined) shared.destinations.add(destination);
      this.#ofDestination.set(destination, shared);
    }
    return shared;
  }

  /** Compiles a listener, or a route of TCP, TLS or UDP, in each step. */
  *finish(): Generator<void, Generation> {
    addGatewayFields(this.#policies, this.#ir.binds);
    const groups = new Map<string, Router<CompiledRoute>>();
    for (const group of this.#ir.routeGroups) {
      const router = this.#owners.get(groupOwner(group.name))?.router;
      if (router !== undefined) groups.set(group.name, router.finish());
    }
    const binds = new Map<string, CompiledBind>();
    for (const bind of this.#ir.binds) binds.set(bind.key, yield* this.#bind(bind, groups));
    const endpoints = this.#destinations.held;
    this.#link.compiler = undefined;
    // They refer to the former configuration.
    this.#owners.clear();
    return {
      generation: this.#generation,
      binds,
      endpoints,
      calls: this.#calls,
      budgets: this.#budgets,
      addresses: this.#addresses,
      destinations: this.#destinations,
      terminators: this.#terminators,
      customFunctions: this.#ir.customFunctions ?? "",
      routes: this.#routes,
    };
  }

  /** Releases what `finish` would have held. */
  abandon(): void {
    this.#endpoints.release(this.#destinations.held);
  }

  *#bind(bind: Bind, groups: ReadonlyMap<string, Router<CompiledRoute>>): Generator<void, CompiledBind> {
    const listeners: { readonly hostname: string; readonly value: CompiledListener }[] = [];
    for (const listener of bind.listeners) {
      // Plain TCP and UDP carry no host name: the listener serves the whole port.
      const hostname = listener.protocol === "TCP" || listener.protocol === "UDP" ? "" : listener.hostname;
      listeners.push({ hostname, value: yield* this.#listener(bind, listener) });
      yield;
    }
    const service = bind.frontend.networkExtAuthz;
    const { cel } = this.#policies;
    const { accessLog: log, tracing: spans, maxBufferSize } = bind.frontend;
    const proxies = bind.frontend.proxyProtocol?.from;
    const accessLog = log && new AccessLogEdits(log, cel);
    const logExport = log?.otlp && new LogExport(log.otlp, this.#exports, cel);
    const tracing = spans && new RequestTracing(spans, this.#exports, this.#random, cel);
    const readers = [accessLog, logExport, tracing, this.#customLabels];
    return {
      key: bind.key,
      host: bind.host,
      port: bind.port,
      protocol: bind.protocol,
      mode: bind.mode,
      accessLog,
      logExport,
      tracing,
      writesValues: readers.some((reader) => (reader?.reads.size ?? 0) > 0),
      recordedBodies: bodyCaptureOptions(readers, maxBufferSize),
      network: bind.frontend.networkAuthorization && new Rules(bind.frontend.networkAuthorization, "network", cel),
      networkAuthorizer: service && this.#networkAuthorizer(service),
      frontend: bind.frontend,
      proxies: proxies && new Networks(proxies),
      forwarding: new Forwarding(bind.frontend),
      listeners: new ListenerTable(listeners),
      policies: this.#policies,
      groups,
      merged: this.#merged,
      provenance: this.#provenance,
      series: new SeriesCache(this.#metrics, { ...UNROUTED, bind: bind.key }),
    };
  }

  #networkAuthorizer(service: NetworkExtAuthz): NetworkAuthorizer {
    const { cel, log } = this.#policies;
    return new NetworkAuthorizer(
      prepareNetworkAuthz(service, cel),
      this.callout(service.target, service.policies),
      log,
    );
  }

  *#listener(bind: Bind, listener: Listener): Generator<void, CompiledListener> {
    const labels = listenerLabels(bind, listener);
    const tcpRoutes: CompiledTcpRoute[] = [];
    for (const route of listener.tcpRoutes) {
      tcpRoutes.push(this.#tcpRoute(route, labels));
      yield;
    }
    return {
      key: listener.key,
      name: listener.name,
      gateway: labels.gateway,
      protocol: listener.protocol,
      terminator: this.#terminatorOf(listener),
      tcpRoutes: new TcpRouteTable(tcpRoutes),
      policies: compilePolicies(listener.policies, "gateway", this.#recording, listener.key),
      router: (this.#owners.get(listener.key)?.router ?? new RouterBuilder<CompiledRoute>()).finish(),
      series: new SeriesCache(this.#metrics, labels),
    };
  }

  #terminatorOf(listener: Listener): TlsTerminator | undefined {
    const { key, protocol, tls } = listener;
    if (tls === undefined) return undefined;
    const settings = `${protocol} ${JSON.stringify(tls)}`;
    const before = this.#terminatorsBefore?.get(key);
    const terminator =
      before?.settings === settings
        ? before.terminator
        : makeTerminator(key, protocol, tls, this.#tickets, this.#policies.log);
    this.#terminators.set(key, { settings, terminator });
    return terminator;
  }

  #route(route: Route, owner: FixedLabels): CompiledRoute {
    const label = `${route.namespace}/${route.name}`;
    const labels = { ...owner, route: label, route_rule: route.ruleName ?? "unknown" };
    const backends = route.backends.map((backend) => this.#backend(backend, labels, "request"));
    return {
      only: onlyBackend(backends),
      policies: compilePolicies(route.policies, "route", this.#recording, route.key),
      key: route.key,
      createdAt: route.createdAt ?? 0,
      label,
      rule: route.ruleName,
      policySet: Object.keys(route.policies).length === 0 ? NO_POLICY_SET : route.policies,
      backends,
      totalWeight: totalWeight(backends),
      series: new SeriesCache(this.#metrics, labels),
      uses: this.#usesOfRoute(),
    };
  }

  #tcpRoute(route: TcpRoute, owner: FixedLabels): CompiledTcpRoute {
    const label = `${route.namespace}/${route.name}`;
    const backends = route.backends.map((backend) => this.#backend(backend, { ...owner, route: label }, "network"));
    return { label, hostnames: route.hostnames, backends, totalWeight: totalWeight(backends) };
  }

  #backend(backend: RouteBackend, labels: FixedLabels, scope: "request" | "network"): CompiledBackend {
    const { balancer, target } = this.#destination(
      backend.target,
      backend.policies,
      this.#healthCheck(backend.policies),
    );
    const { health, sessionAffinity, http } = backend.policies;
    const { cel } = this.#policies;
    const expression = target.type === "dynamic" ? target.expression : undefined;
    // Fields that every request reads come first, so that they share one or two cache lines.
    return {
      policies: compilePolicies(backend.policies, "backend", this.#recording, backend.key),
      requestTimeout: http?.requestTimeout,
      balancer,
      target,
      calls: this.#callsOf(backend.key),
      outliers: health && new OutlierDetector(health, cel),
      retries: this.#retryLimits(backend),
      affinity: sessionAffinity && new AffinityKey(sessionAffinity, cel),
      series: new SeriesCache(this.#metrics, labels, backend.key),
      key: backend.key,
      weight: backend.weight,
      dynamic: expression === undefined ? undefined : new DynamicTarget(expression, scope, this.#policies.cel),
      connection: target.type === "dynamic" ? this.#dynamicConnection(backend.policies) : undefined,
    };
  }

  #retryLimits({ key, target, policies: { http, retryBudget } }: RouteBackend): RetryLimits | undefined {
    if (http?.maxRetries === undefined && retryBudget === undefined) return undefined;
    return {
      max: http?.maxRetries ?? Number.POSITIVE_INFINITY,
      budget: retryBudget && this.#budgetOf(target, retryBudget),
      overflows: this.#metrics.retryOverflows(key),
    };
  }

  /** Routes to one target with the same settings share a budget, and a reload that keeps both keeps its counts. */
  #budgetOf(target: Target, settings: RetryBudgetSettings): RetryBudget {
    const key = JSON.stringify([target, settings]);
    const budget = this.#budgets.get(key) ?? this.#endpoints.budgets.get(key) ?? new RetryBudget(key, settings);
    this.#budgets.set(key, budget);
    return budget;
  }

  #callsOf(key: string): BackendCalls {
    if (!this.#calls.has(key)) this.#calls.set(key, this.#endpoints.calls.get(key) ?? { total: 0, retrying: 0 });
    return this.#calls.get(key) as BackendCalls;
  }

  #dynamicConnection(policies: PolicySet): DynamicConnection | undefined {
    this.#noteProxy(policies);
    const settings = connectionOf(policies, this.#services);
    const identity = settingsIdentity(settings);
    return identity === "" ? undefined : { settings, identity };
  }

  /** Policies that call the same target in the same way share a callout. No callout is added once the configuration is complete. */
  callout(target: Target, policies: CallPolicies = {}): Callout<CalloutContext> {
    const key = JSON.stringify([target, policies]);
    let known = this.#callouts.get(key);
    if (known === undefined) {
      const outer = this.#used;
      const uses = new Uses();
      this.#used = uses;
      const { balancer } = this.#destination(target, policies);
      const prepare = compileCallPolicies(policies, this.#recording);
      this.#used = outer;
      known = {
        callout: balancer === undefined ? NO_UPSTREAM : new Callout(balancer, prepare, this.#policies.answers),
        uses,
      };
      this.#callouts.set(key, known);
    }
    this.#used.include(known.uses);
    this.#used.callouts.set(key, known);
    return known.callout;
  }

  #noteProxy(policies: PolicySet): void {
    const proxy = proxyService(policies);
    if (proxy !== undefined) this.#used.proxies.add(proxy);
  }

  /** Conditional transformations do not apply to probes, which have no client request for their conditions. */
  #healthCheck(policies: PolicySet): HealthCheck | undefined {
    const identity = checkIdentity(policies);
    const settings = policies.health?.active;
    if (identity === undefined || settings === undefined) return undefined;
    return { settings, identity, prepare: compileCallPolicies(callPoliciesOf(policies), this.#recording) };
  }

  #destination(target: Target, policies: PolicySet, check?: HealthCheck): Destination {
    this.#noteProxy(policies);
    const destination = this.#destinations.find(target, policies, check);
    if (destination.balancer !== undefined) this.#used.destinations.add(destination);
    return destination;
  }
}

function compilerOf({ compiler }: Link): IrCompiler {
  if (compiler === undefined) throw new Error("policies use their environment only while they are created");
  return compiler;
}

function totalWeight(backends: readonly CompiledBackend[]): number {
  return backends.reduce((sum, backend) => sum + backend.weight, 0);
}

function onlyBackend(backends: readonly CompiledBackend[]): CompiledBackend | undefined {
  const [first, ...others] = backends;
  if (first === undefined || others.length > 0) return undefined;
  return first.weight > 0 && first.target.type !== "routeGroup" ? first : undefined;
}

function listenerLabels(bind: Bind, listener: Listener): FixedLabels {
  return {
    ...UNROUTED,
    bind: bind.key,
    gateway: `${listener.gatewayNamespace}/${listener.gatewayName}`,
    listener: listener.name,
  };
}

/** What HTTPS listeners offer unless the configuration says otherwise, in order of preference. */
const ALPN = ["h2", "http/1.1"];

/** Certificates that it makes are logged. */
function makeTerminator(
  key: string,
  protocol: Listener["protocol"],
  tls: TlsServer,
  tickets: TicketSecrets,
  log: Logger | undefined,
): TlsTerminator {
  const protocols = protocol === "HTTPS" ? (tls.alpn ?? ALPN) : [];
  return new TlsTerminator(key, tls, protocols, tickets, (name, { serialNumber, notAfter }) => {
    const expires = new Date(notAfter).toISOString();
    log?.debug("certificate made", { listener: key, "tls.sni": name, serial: serialNumber, expires });
  });
}
