import type { BackendTls } from "../tls/tls-settings.ts";
import { type Balancer, SingleEndpoint } from "./balancers/balancer.ts";
import { serviceBalancer } from "./balancers/registry.ts";
import type { ServiceIndex, Workload } from "./discovery.ts";
import type { Endpoint } from "./endpoint.ts";
import { type Endpoints, endpointKey } from "./endpoints.ts";
import { type Locality, localityBuckets } from "./locality.ts";
import {
  type Address,
  type ConnectionSettings,
  type PoolLimits,
  type PoolTarget,
  settingsIdentity,
} from "./pool-target.ts";
import type { BackendHttp, BackendTcp, BackendTunnel, HttpVersion, SessionAffinity } from "./settings.ts";
import type { Target } from "./target.ts";

/** The policies of a backend that say how it is connected to and which endpoint is chosen. */
export interface DestinationPolicies {
  readonly backendTLS?: BackendTls | undefined;
  readonly tcp?: BackendTcp | undefined;
  readonly http?: BackendHttp | undefined;
  readonly backendTunnel?: BackendTunnel | undefined;
  readonly sessionAffinity?: SessionAffinity | undefined;
}

/** Where the calls to a target go. */
export interface Destination {
  readonly target: Target;
  /** undefined for targets without endpoints of their own: `routeGroup`, `dynamic`, `internal`, `invalid`. */
  readonly balancer: Balancer | undefined;
  /** References to a service with one key share it; `` for other targets. */
  readonly key: string;
}

/**
 * Compiles the targets of one configuration into balancers over endpoints, which it holds until they are released. References
 * to the same target that connect in the same way share a destination: a thousand routes to a service with a hundred workloads
 * hold a hundred endpoints in one balancer.
 */
export class Destinations {
  readonly #endpoints: Endpoints;
  readonly #services: ServiceIndex;
  readonly #locality: Locality;
  readonly #random: () => number;
  readonly #held = new Map<string, Endpoint>();
  readonly #singles = new Map<Endpoint, Destination>();
  readonly #ofServices = new Map<string, Destination>();

  /** `locality`: where this gateway runs. `random` is uniform in [0, 1). */
  constructor(endpoints: Endpoints, services: ServiceIndex, locality: Locality, random: () => number) {
    this.#endpoints = endpoints;
    this.#services = services;
    this.#locality = locality;
    this.#random = random;
  }

  /** What has to be released when the configuration goes. */
  get held(): readonly Endpoint[] {
    return [...this.#held.values()];
  }

  /** The destination of a target with these policies; made for the first reference to it. */
  find(target: Target, policies: DestinationPolicies): Destination {
    const settings = connectionOf(policies, this.#services);
    switch (target.type) {
      case "static":
        return this.#single(target, { host: target.host, port: target.port, ...settings });
      case "unix":
        return this.#single(target, { path: target.path, ...settings });
      case "service": {
        const affinity = policies.sessionAffinity !== undefined;
        return this.#ofService(target, settings, affinity);
      }
      default:
        return { target, balancer: undefined, key: "" };
    }
  }

  /**
   * Holds and shares a destination of another configuration, which holds it still and has the same services. Whoever uses it
   * there can go on using it.
   */
  takeOver(destination: Destination): void {
    const { balancer, key } = destination;
    if (balancer === undefined || this.#ofServices.get(key) === destination) return;
    for (const endpoint of balancer.endpoints) {
      if (!this.#held.has(endpoint.key)) {
        this.#endpoints.retain(endpoint);
        this.#held.set(endpoint.key, endpoint);
      }
      if (key === "" && !this.#singles.has(endpoint)) this.#singles.set(endpoint, destination);
    }
    if (key !== "" && !this.#ofServices.has(key)) this.#ofServices.set(key, destination);
  }

  /** Backends with the same single endpoint share all of this: with many routes, what they share stays in the caches. */
  #single(target: Target, address: PoolTarget): Destination {
    const endpoint = this.#hold(address, 1);
    let destination = this.#singles.get(endpoint);
    if (destination === undefined) {
      destination = { target, balancer: new SingleEndpoint(endpoint), key: "" };
      this.#singles.set(endpoint, destination);
    }
    return destination;
  }

  #ofService(
    target: Extract<Target, { type: "service" }>,
    settings: ConnectionSettings,
    affinity: boolean,
  ): Destination {
    const identity = `${target.key} ${target.port} ${affinity} ${settingsIdentity(settings)}`;
    let destination = this.#ofServices.get(identity);
    if (destination === undefined) {
      const { loadBalancer } = this.#services.find(target.key)?.service ?? {};
      const buckets = this.#buckets(target.key, target.port, settings);
      const balancer = serviceBalancer(buckets, loadBalancer?.algorithm, affinity, this.#random);
      destination = { target, balancer, key: identity };
      this.#ofServices.set(identity, destination);
    }
    return destination;
  }

  /** One endpoint for each usable workload of the service and each of its addresses, the nearest bucket first. */
  #buckets(key: string, port: number, settings: ConnectionSettings): Endpoint[][] {
    const { service, workloads } = this.#services.find(key) ?? { service: undefined, workloads: [] };
    const version = settings.version ?? versionOf(service?.appProtocols?.[port]);
    const how = version === undefined ? settings : { ...settings, version };
    return localityBuckets(service ?? {}, workloads, this.#locality).map((bucket) =>
      bucket.flatMap((workload) =>
        addressesOf(workload, key, port, service?.ports[port]).map((address) =>
          this.#hold({ ...address, ...how }, workload.capacity, workload.uid),
        ),
      ),
    );
  }

  /** `owner` distinguishes two workloads at one address, which have a health each. */
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

/** What the policies of a backend say about how its connections are made. */
export function connectionOf(
  { backendTLS, tcp, backendTunnel, http }: DestinationPolicies,
  services: ServiceIndex,
): ConnectionSettings {
  return {
    ...(backendTLS !== undefined && { tls: backendTLS }),
    ...(tcp !== undefined && { tcp }),
    ...(http?.version !== undefined && { version: http.version }),
    ...limitsOf(tcp, http),
    ...(backendTunnel !== undefined && {
      tunnel: {
        proxies: proxiesAt(backendTunnel.proxy, services),
        authorization: backendTunnel.authorization,
        tls: backendTunnel.tls,
      },
    }),
  };
}

/** Limits of `http` go before those of `tcp`, which are meant for bytes without HTTP. */
function limitsOf(tcp: PoolLimits = {}, http: PoolLimits = {}): Pick<ConnectionSettings, "limits"> {
  const maxConnections = http.maxConnections ?? tcp.maxConnections;
  const maxPendingRequests = http.maxPendingRequests ?? tcp.maxPendingRequests;
  if (maxConnections === undefined && maxPendingRequests === undefined) return {};
  return { limits: { maxConnections, maxPendingRequests } };
}

/** `appProtocols` of services that say which version of HTTP is spoken (reference 2.5); others say nothing about it. */
const VERSIONS: ReadonlyMap<string, HttpVersion> = new Map([
  ["http1", "HTTP/1.1"],
  ["http2", "HTTP/2.0"],
  ["grpc", "HTTP/2.0"],
  ["kubernetes.io/h2c", "HTTP/2.0"],
]);

function versionOf(appProtocol: string | undefined): HttpVersion | undefined {
  return appProtocol === undefined ? undefined : VERSIONS.get(appProtocol.toLowerCase());
}

/** Every healthy workload of a service may be the proxy. */
function proxiesAt(target: Target, services: ServiceIndex): Address[] {
  if (target.type === "static") return [{ host: target.host, port: target.port }];
  if (target.type === "unix") return [{ path: target.path }];
  if (target.type !== "service") return [];
  const { key, port } = target;
  const { service, workloads } = services.find(key) ?? { service: undefined, workloads: [] };
  const healthy = workloads.filter(({ status }) => status === "healthy");
  return healthy.flatMap((workload) => addressesOf(workload, key, port, service?.ports[port]));
}

/** A workload has a port of its own for a port of a service, or `servicePort`; without either it does not serve that port. */
function addressesOf(
  { services, workloadIps, hostname }: Workload,
  key: string,
  port: number,
  servicePort: number | undefined,
): { readonly host: string; readonly port: number }[] {
  const targetPort = services[key]?.[port] ?? servicePort;
  if (targetPort === undefined) return [];
  const hosts = workloadIps.length > 0 ? workloadIps : hostname ? [hostname] : [];
  return hosts.map((host) => ({ host, port: targetPort }));
}
