import { CelEnvironment } from "../cel/index.ts";
import type { Bind, Ir, Listener, Route, RouteBackend, TcpRoute } from "../ir/ir.ts";
import { Rules } from "../policies/authorization/rules.ts";
import { compileCallPolicies } from "../policies/calls/compile.ts";
import { compilePolicies } from "../policies/compile.ts";
import type { PolicyEnvironment } from "../policies/deps.ts";
import { NetworkAuthorizer, prepareNetworkAuthz } from "../policies/ext-authz/network.ts";
import { NO_POLICY_SET } from "../policies/merge.ts";
import type { CallPolicies, NetworkExtAuthz, PolicySet } from "../policies/policy-set.ts";
import { CredentialNames } from "../policies/shared/credentials/names.ts";
import { OwnFields } from "../policies/shared/own-fields.ts";
import type { CalloutContext } from "../policies/types.ts";
import { AccessLogEdits } from "../telemetry/access-log-edits.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { tlsIdentity } from "../tls/tls-client.ts";
import { PowerOfTwoChoices, SingleEndpoint } from "../upstream/balancer.ts";
import { Callout, NO_UPSTREAM } from "../upstream/callout.ts";
import type { Workload } from "../upstream/discovery.ts";
import type { DynamicConnection } from "../upstream/dynamic.ts";
import { DynamicTarget } from "../upstream/dynamic.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import { type BackendCalls, type Endpoints, endpointKey } from "../upstream/endpoints.ts";
import { type Locality, localityBuckets } from "../upstream/locality.ts";
import { endpointRules } from "../upstream/outlier.ts";
import type { ConnectionSettings, PoolTarget } from "../upstream/pool-target.ts";
import type { Target } from "../upstream/target.ts";
import { bodyCaptureOptions } from "./body/recorded-bodies.ts";
import { addGatewayFields } from "./client-fields.ts";
import type { CompiledBackend, CompiledBind, CompiledListener, CompiledRoute, CompiledTcpRoute } from "./compiled.ts";
import { connectionOf, versionOf } from "./connection-of.ts";
import { Forwarding } from "./forwarding.ts";
import { ListenerTable } from "./match/listeners.ts";
import { type Router, RouterBuilder } from "./match/router.ts";
import { type FixedLabels, SeriesCache } from "./series-cache.ts";
import type { Services } from "./services.ts";
import { TcpRouteTable } from "./tcp/routes.ts";
import { LogExport } from "./telemetry/log-export.ts";
import { RequestTracing } from "./telemetry/request-tracing.ts";
import { terminatorOf } from "./terminator.ts";

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

type Destination = Pick<CompiledBackend, "target" | "balancer">;

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
  readonly #locality: Locality;
  readonly #exports: Services["exports"];
  readonly #random: Services["random"];
  readonly #endpoints: Endpoints;
  readonly #calls = new Map<string, BackendCalls>();
  readonly #ir: Ir;
  readonly #generation: number;
  readonly #held = new Map<string, Endpoint>();
  readonly #singles = new Map<Endpoint, Destination>();
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
    this.#locality = locality;
    this.#exports = exports;
    this.#random = random;
    this.#generation = generation;
    this.#ir = ir;
    this.#metrics = metrics;
    this.#customLabels = customLabels;
    this.#endpoints = endpoints;
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
    const endpoints = [...this.#held.values()];
    return { generation: this.#generation, binds, endpoints, calls: this.#calls, workloads: this.#ir.workloads };
  }

  /** Gives back what `finish` would have held. */
  abandon(): void {
    this.#endpoints.release([...this.#held.values()]);
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
    const { balancer, target } = this.#destination(backend.target, backend.policies);
    const expression = target.type === "dynamic" ? target.expression : undefined;
    // What every request reads stands first, where one or two cache lines hold it.
    return {
      policies: compilePolicies(backend.policies, "backend", this.#policies, backend.key),
      balancer,
      target,
      calls: this.#callsOf(backend.key),
      rules: endpointRules(backend.policies, this.#policies.cel),
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
    const settings = connectionOf(policies, this.#ir);
    return Object.keys(settings).length === 0 ? undefined : { settings, identity: tlsIdentity(settings) };
  }

  #destination(target: Target, policies: PolicySet = NO_POLICY_SET): Destination {
    const how = connectionOf(policies, this.#ir);
    switch (target.type) {
      case "static":
        return this.#single(target, { host: target.host, port: target.port, ...how });
      case "unix":
        return this.#single(target, { path: target.path, ...how });
      case "service":
        return {
          target,
          balancer: new PowerOfTwoChoices(this.#serviceBuckets(target.key, target.port, how), this.#random),
        };
      default:
        return { target, balancer: undefined };
    }
  }

  /** Policies that ask one target in one way share a service; it takes no more endpoints once the configuration is complete. */
  callout(target: Target, policies: CallPolicies = {}): Callout<CalloutContext> {
    const key = JSON.stringify([target, policies]);
    let callout = this.#callouts.get(key);
    if (callout === undefined) {
      const { balancer } = this.#destination(target, policies);
      const prepare = compileCallPolicies(policies, this.#policies);
      callout = balancer === undefined ? NO_UPSTREAM : new Callout(balancer, prepare);
      this.#callouts.set(key, callout);
    }
    return callout;
  }

  /** Backends with the same single endpoint share all of this: with many routes, what they share is at hand. */
  #single(target: Target, address: PoolTarget): Destination {
    const endpoint = this.#hold(address, 1);
    let destination = this.#singles.get(endpoint);
    if (destination === undefined) {
      destination = { target, balancer: new SingleEndpoint(endpoint) };
      this.#singles.set(endpoint, destination);
    }
    return destination;
  }

  /** One endpoint for each usable workload of the service and each of its addresses, the nearest bucket first. */
  #serviceBuckets(key: string, port: number, how: ConnectionSettings): Endpoint[][] {
    const service = this.#ir.services.find((each) => `${each.namespace}/${each.hostname}` === key);
    const version = how.version ?? versionOf(service?.appProtocols?.[port]);
    const connection = version === undefined ? how : { ...how, version };
    const workloads = this.#ir.workloads.filter((workload) => workload.services[key] !== undefined);
    return localityBuckets(service ?? {}, workloads, this.#locality).map((bucket) =>
      bucket.flatMap((workload) => this.#workloadEndpoints(workload, key, port, service?.ports[port], connection)),
    );
  }

  #workloadEndpoints(
    { services, workloadIps, hostname, capacity, uid }: Workload,
    service: string,
    port: number,
    servicePort: number | undefined,
    how: ConnectionSettings,
  ): Endpoint[] {
    const targetPort = services[service]?.[port] ?? servicePort;
    if (targetPort === undefined) return [];
    const hosts = workloadIps.length > 0 ? workloadIps : hostname ? [hostname] : [];
    return hosts.map((host) => this.#hold({ host, port: targetPort, ...how }, capacity, uid));
  }

  #hold(target: PoolTarget, capacity: number, owner?: string): Endpoint {
    const key = endpointKey(target, capacity, owner);
    let endpoint = this.#held.get(key);
    if (endpoint === undefined) {
      endpoint = this.#endpoints.acquire(target, capacity, owner);
      this.#held.set(key, endpoint);
    }
    return endpoint;
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
