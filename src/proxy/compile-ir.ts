import type { Logger } from "../base/log.ts";
import { CelEnvironment } from "../cel/index.ts";
import type { Bind, Ir, Listener, Route, RouteBackend, TcpRoute } from "../ir/ir.ts";
import { Rules } from "../policies/authorization/rules.ts";
import { compileCallPolicies } from "../policies/calls/compile.ts";
import type { CallPolicies } from "../policies/calls/schema.ts";
import { compilePolicies } from "../policies/compile.ts";
import type { PolicyEnvironment } from "../policies/deps.ts";
import { NetworkAuthorizer, prepareNetworkAuthz } from "../policies/ext-authz/network.ts";
import type { NetworkExtAuthz } from "../policies/ext-authz/network-schema.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import { CredentialNames } from "../policies/shared/credentials/names.ts";
import { OwnFields } from "../policies/shared/own-fields.ts";
import type { CalloutContext } from "../policies/types.ts";
import { AccessLogEdits } from "../telemetry/access-log-edits.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { TlsTerminator } from "../tls/tls-terminator.ts";
import { AffinityKey } from "../upstream/balancers/rendezvous.ts";
import { Callout, NO_UPSTREAM } from "../upstream/callout.ts";
import { connectionOf, Destinations } from "../upstream/destinations.ts";
import { ServiceIndex, type Workload } from "../upstream/discovery.ts";
import type { DynamicConnection } from "../upstream/dynamic.ts";
import { DynamicTarget } from "../upstream/dynamic.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import type { BackendCalls, Endpoints } from "../upstream/endpoints.ts";
import { OutlierDetector } from "../upstream/outlier.ts";
import { settingsIdentity } from "../upstream/pool-target.ts";
import type { Target } from "../upstream/target.ts";
import { bodyCaptureOptions } from "./body/recorded-bodies.ts";
import { addGatewayFields } from "./client-fields.ts";
import type { CompiledBackend, CompiledBind, CompiledListener, CompiledRoute, CompiledTcpRoute } from "./compiled.ts";
import { Forwarding } from "./forwarding.ts";
import { ListenerTable } from "./match/hosts.ts";
import { type Router, RouterBuilder } from "./match/router.ts";
import { type FixedLabels, SeriesCache } from "./series-cache.ts";
import type { Services } from "./services.ts";
import { TcpRouteTable } from "./tcp/routes.ts";
import { LogExport } from "./telemetry/log-export.ts";
import { RequestTracing } from "./telemetry/request-tracing.ts";

/** Routes of one listener or route group, a slice at a time. */
export interface RouteSlice {
  /** A listener's key or `group/<name>`. */
  readonly owner: string;
  readonly routes: readonly Route[];
}

/** One configuration ready to serve. */
export interface Generation {
  readonly generation: number;
  readonly binds: ReadonlyMap<string, CompiledBind>;
  /** Held for as long as the generation lives; released afterwards. */
  readonly endpoints: readonly Endpoint[];
  readonly calls: ReadonlyMap<string, BackendCalls>;
  readonly workloads: readonly Workload[];
}

export type CompilerServices = Pick<
  Services,
  "metrics" | "customLabels" | "policies" | "locality" | "exports" | "random"
>;

const UNROUTED: Omit<FixedLabels, "bind"> = {
  backend: "unknown",
  protocol: "http",
  gateway: "unknown",
  listener: "unknown",
  route: "unknown",
  route_rule: "unknown",
};

/** Compiles one configuration, fed slice by slice so that requests go on being served in between. */
export class IrCompiler {
  readonly #metrics: Metrics;
  readonly #customLabels: Services["customLabels"];
  readonly #policies: PolicyEnvironment;
  readonly #exports: Services["exports"];
  readonly #random: Services["random"];
  readonly #endpoints: Endpoints;
  readonly #calls = new Map<string, BackendCalls>();
  readonly #ir: Ir;
  readonly #generation: number;
  readonly #services: ServiceIndex;
  readonly #destinations: Destinations;
  readonly #callouts = new Map<string, Callout<CalloutContext>>();
  readonly #routers = new Map<string, RouterBuilder<CompiledRoute>>();
  readonly #owners = new Map<string, FixedLabels>();

  /** `ir` comes without routes: they follow by `addRoutes`. */
  constructor(
    generation: number,
    ir: Ir,
    { metrics, customLabels, policies, locality, exports, random }: CompilerServices,
    endpoints: Endpoints,
  ) {
    this.#policies = {
      ...policies,
      cel: CelEnvironment.defining(ir.customFunctions ?? ""),
      callouts: (target, policies) => this.callout(target, policies),
      credentials: new CredentialNames(),
      ownFields: new OwnFields(),
    };
    this.#exports = exports;
    this.#random = random;
    this.#generation = generation;
    this.#ir = ir;
    this.#metrics = metrics;
    this.#customLabels = customLabels;
    this.#endpoints = endpoints;
    this.#services = new ServiceIndex(ir.services, ir.workloads);
    this.#destinations = new Destinations(endpoints, this.#services, locality, random);
    for (const bind of ir.binds)
      for (const listener of bind.listeners) {
        this.#routers.set(listener.key, new RouterBuilder());
        this.#owners.set(listener.key, listenerLabels(bind, listener));
      }
    for (const group of ir.routeGroups) {
      this.#routers.set(groupOwner(group.name), new RouterBuilder());
      this.#owners.set(groupOwner(group.name), { ...UNROUTED, bind: "unknown" });
    }
  }

  addRoutes(slice: RouteSlice): void {
    const builder = this.#routers.get(slice.owner);
    const labels = this.#owners.get(slice.owner);
    if (builder === undefined || labels === undefined) return;
    for (const route of slice.routes) builder.add(route, this.#route(route, labels));
  }

  finish(): Generation {
    addGatewayFields(this.#policies, this.#ir.binds);
    const groups = new Map<string, Router<CompiledRoute>>();
    for (const group of this.#ir.routeGroups) {
      const builder = this.#routers.get(groupOwner(group.name));
      if (builder !== undefined) groups.set(group.name, builder.finish());
    }
    const binds = new Map(this.#ir.binds.map((bind) => [bind.key, this.#bind(bind, groups)]));
    const endpoints = this.#destinations.held;
    return { generation: this.#generation, binds, endpoints, calls: this.#calls, workloads: this.#ir.workloads };
  }

  /** Gives back what `finish` would have held. */
  abandon(): void {
    this.#endpoints.release(this.#destinations.held);
  }

  #bind(bind: Bind, groups: ReadonlyMap<string, Router<CompiledRoute>>): CompiledBind {
    const listeners = bind.listeners.map((listener) => ({
      // Without TLS or HTTP nobody names a host: the listener serves all of its port.
      hostname: listener.protocol === "TCP" ? "" : listener.hostname,
      value: this.#listener(bind, listener),
    }));
    const service = bind.frontend.networkExtAuthz;
    const { cel } = this.#policies;
    const { accessLog: log, tracing: spans, maxBufferSize } = bind.frontend;
    const accessLog = log && new AccessLogEdits(log, cel);
    const logExport = log?.otlp && new LogExport(log.otlp, this.#exports, cel);
    const tracing = spans && new RequestTracing(spans, this.#exports, this.#random, cel);
    return {
      key: bind.key,
      host: bind.host,
      port: bind.port,
      protocol: bind.protocol,
      mode: bind.mode,
      accessLog,
      logExport,
      tracing,
      recordedBodies: bodyCaptureOptions([accessLog, logExport, tracing, this.#customLabels], maxBufferSize),
      network: bind.frontend.networkAuthorization && new Rules(bind.frontend.networkAuthorization, "network", cel),
      networkAuthorizer: service && this.#networkAuthorizer(service),
      frontend: bind.frontend,
      forwarding: new Forwarding(bind.frontend),
      listeners: new ListenerTable(listeners),
      policies: this.#policies,
      groups,
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

  #listener(bind: Bind, listener: Listener): CompiledListener {
    const labels = listenerLabels(bind, listener);
    return {
      key: listener.key,
      name: listener.name,
      gateway: labels.gateway,
      protocol: listener.protocol,
      terminator: terminatorOf(listener, this.#policies.log),
      tcpRoutes: new TcpRouteTable(listener.tcpRoutes.map((route) => this.#tcpRoute(route, labels))),
      policies: compilePolicies(listener.policies, "gateway", this.#policies, listener.key),
      router: (this.#routers.get(listener.key) ?? new RouterBuilder<CompiledRoute>()).finish(),
      series: new SeriesCache(this.#metrics, labels),
    };
  }

  #route(route: Route, owner: FixedLabels): CompiledRoute {
    const label = `${route.namespace}/${route.name}`;
    const labels = { ...owner, route: label, route_rule: route.ruleName ?? "unknown" };
    const backends = route.backends.map((backend) => this.#backend(backend, labels, "request"));
    return {
      only: onlyBackend(backends),
      policies: compilePolicies(route.policies, "route", this.#policies, route.key),
      key: route.key,
      label,
      rule: route.ruleName,
      policySet: route.policies,
      backends,
      totalWeight: totalWeight(backends),
      series: new SeriesCache(this.#metrics, labels),
    };
  }

  #tcpRoute(route: TcpRoute, owner: FixedLabels): CompiledTcpRoute {
    const label = `${route.namespace}/${route.name}`;
    const backends = route.backends.map((backend) => this.#backend(backend, { ...owner, route: label }, "network"));
    return { label, hostnames: route.hostnames, backends, totalWeight: totalWeight(backends) };
  }

  #backend(backend: RouteBackend, labels: FixedLabels, scope: "request" | "network"): CompiledBackend {
    const { balancer, target } = this.#destinations.find(backend.target, backend.policies);
    const { health, sessionAffinity } = backend.policies;
    const { cel } = this.#policies;
    const expression = target.type === "dynamic" ? target.expression : undefined;
    // What every request reads stands first, where one or two cache lines hold it.
    return {
      policies: compilePolicies(backend.policies, "backend", this.#policies, backend.key),
      balancer,
      target,
      calls: this.#callsOf(backend.key),
      outliers: health && new OutlierDetector(health, cel),
      affinity: sessionAffinity && new AffinityKey(sessionAffinity, cel),
      series: new SeriesCache(this.#metrics, labels, backend.key),
      key: backend.key,
      weight: backend.weight,
      dynamic: expression === undefined ? undefined : new DynamicTarget(expression, scope, this.#policies.cel),
      connection: target.type === "dynamic" ? this.#dynamicConnection(backend.policies) : undefined,
    };
  }

  #callsOf(key: string): BackendCalls {
    if (!this.#calls.has(key)) this.#calls.set(key, this.#endpoints.calls.get(key) ?? { total: 0 });
    return this.#calls.get(key) as BackendCalls;
  }

  #dynamicConnection(policies: PolicySet): DynamicConnection | undefined {
    const settings = connectionOf(policies, this.#services);
    const identity = settingsIdentity(settings);
    return identity === "" ? undefined : { settings, identity };
  }

  /** Policies that ask one target in one way share a service; it takes no more endpoints once the configuration is complete. */
  callout(target: Target, policies: CallPolicies = {}): Callout<CalloutContext> {
    const key = JSON.stringify([target, policies]);
    let callout = this.#callouts.get(key);
    if (callout === undefined) {
      const { balancer } = this.#destinations.find(target, policies);
      const prepare = compileCallPolicies(policies, this.#policies);
      callout = balancer === undefined ? NO_UPSTREAM : new Callout(balancer, prepare);
      this.#callouts.set(key, callout);
    }
    return callout;
  }
}

function totalWeight(backends: readonly CompiledBackend[]): number {
  return backends.reduce((sum, backend) => sum + backend.weight, 0);
}

function onlyBackend(backends: readonly CompiledBackend[]): CompiledBackend | undefined {
  const [first, ...others] = backends;
  if (first === undefined || others.length > 0) return undefined;
  return first.weight > 0 && first.target.type !== "routeGroup" ? first : undefined;
}

export function groupOwner(name: string): string {
  return `group/${name}`;
}

function listenerLabels(bind: Bind, listener: Listener): FixedLabels {
  return {
    ...UNROUTED,
    bind: bind.key,
    gateway: `${listener.gatewayNamespace}/${listener.gatewayName}`,
    listener: listener.name,
  };
}

/** Terminates TLS for a listener; undefined for plaintext and passthrough. Certificates that it makes are logged. */
function terminatorOf(
  { key, protocol, tls }: Pick<Listener, "key" | "protocol" | "tls">,
  log: Logger | undefined,
): TlsTerminator | undefined {
  if (tls === undefined) return undefined;
  return new TlsTerminator(tls, protocol === "HTTPS" ? ["http/1.1"] : [], (name, { serialNumber, notAfter }) => {
    const expires = new Date(notAfter).toISOString();
    log?.debug("certificate made", { listener: key, "tls.sni": name, serial: serialNumber, expires });
  });
}
