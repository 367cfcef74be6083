import { isDeepStrictEqual } from "node:util";
import type { BackendTls } from "../../tls/tls-settings.ts";
import { type Balancer, type BucketOrder, SingleEndpoint, type Tiers } from "../balancers/balancer.ts";
import { MovableBalancer } from "../balancers/movable.ts";
import { type MakeBalancer, NamesBalancer } from "../balancers/names.ts";
import { balancesByLoad, serviceBalancer } from "../balancers/registry.ts";
import type { LoadBalancer, Service, ServiceIndex, Workload } from "../discovery/discovery.ts";
import { type Locality, localityTiers, whyBehind } from "../discovery/locality.ts";
import { Endpoint } from "../endpoints/endpoint.ts";
import { type Endpoints, endpointKey, type Held, isOwner, namedKey } from "../endpoints/endpoints.ts";
import type { HealthCheck } from "../endpoints/health-check.ts";
import { NamedEndpoints } from "../endpoints/named-endpoints.ts";
import {
  type Address,
  type ConnectionSettings,
  type FollowedTarget,
  isFollowed,
  type PoolLimits,
  type PoolTarget,
  settingsIdentity,
} from "../settings/pool-target.ts";
import type { BackendHttp, BackendTcp, BackendTunnel, HttpVersion, SessionAffinity } from "../settings/settings.ts";
import type { Target } from "../settings/target.ts";

/** The policies of a backend that say how it is connected to and which endpoint is chosen. */
interface DestinationPolicies {
  readonly backendTLS?: BackendTls | undefined;
  readonly tcp?: BackendTcp | undefined;
  readonly http?: BackendHttp | undefined;
  readonly backendTunnel?: BackendTunnel | undefined;
  readonly sessionAffinity?: SessionAffinity | undefined;
}

/** Where the calls to a target go. */
export interface Destination {
  readonly target: Target;
  /** undefined for targets without their own endpoints: `routeGroup`, `dynamic`, `internal`, `invalid`. */
  readonly balancer: Balancer | undefined;
  /** References to a service or pool with the same key share it, in all configurations; `` for other targets. */
  readonly key: string;
}

/** The calls to a service or pool. Its balancer stays while its endpoints change. */
interface ServiceDestination extends Destination {
  readonly target: ServiceTarget;
  readonly balancer: MovableBalancer;
  readonly settings: ConnectionSettings;
  readonly affinity: boolean;
  readonly check: HealthCheck | undefined;
}

type ServiceTarget = Extract<Target, { type: "service" | "pool" }>;

/** Of a name, and of a service all of whose workloads are equally near. */
const BY_RANK: BucketOrder = {
  whyBehind: ({ resolved }) => (resolved?.address.rank ? `other addresses of ${resolved.host} come first` : ""),
  excluded: () => [],
};

/** The destinations of the configuration in effect, and the services that they were made from. */
interface FormerDestinations {
  readonly services: ServiceIndex;
  readonly locality: Locality;
  readonly ofServices: ReadonlyMap<string, ServiceDestination>;
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
  readonly #held = new Map<string, Held>();
  readonly #singles = new Map<Held, Destination>();
  readonly #ofServices = new Map<string, ServiceDestination>();
  /** undefined once this one is in effect: it would keep all former ones alive. */
  #before: FormerDestinations | undefined;
  /** New endpoints of services that the configuration in effect calls too. */
  readonly #moves = new Map<MovableBalancer, Balancer>();

  /** `locality`: where this gateway runs. `random` is uniform in [0, 1). */
  constructor(
    endpoints: Endpoints,
    services: ServiceIndex,
    locality: Locality,
    random: () => number,
    before?: FormerDestinations,
  ) {
    this.#before = before;
    this.#endpoints = endpoints;
    this.#services = services;
    this.#locality = locality;
    this.#random = random;
  }

  /** What has to be released when the configuration is dropped. */
  get held(): readonly Held[] {
    return [...this.#held.values()];
  }

  /** For the next configuration. */
  get former(): FormerDestinations {
    return { services: this.#services, locality: this.#locality, ofServices: this.#ofServices };
  }

  /** Moves calls of services to their new endpoints. Called when this configuration takes effect. */
  commit(): void {
    for (const [balancer, next] of this.#moves) balancer.move(next);
    this.#moves.clear();
    this.#before = undefined;
  }

  /** The destination of a target with these policies; made for the first reference to it. `check`: the health check of its endpoints. */
  find(target: Target, policies: DestinationPolicies, check?: HealthCheck): Destination {
    const settings = connectionOf(policies, this.#services);
    switch (target.type) {
      case "static": {
        const { type: _, ...where } = target;
        const address: PoolTarget = { ...where, ...settings };
        if (!isFollowed(address)) return this.#single(target, address, check);
        return this.#named(target, address, check);
      }
      case "unix":
        return this.#single(target, { path: target.path, ...settings }, check);
      case "service":
      case "pool": {
        const affinity = policies.sessionAffinity !== undefined;
        return this.#ofService(target, settings, affinity, check);
      }
      default:
        return { target, balancer: undefined, key: "" };
    }
  }

  /** Takes over a destination of the configuration in effect, so that parts that are taken over can keep using it. */
  takeOver(destination: Destination): void {
    const { balancer, key } = destination;
    if (balancer === undefined || this.#ofServices.has(key)) return;
    if (key !== "") {
      this.#keep(destination as ServiceDestination);
      return;
    }
    this.#retain(balancer);
    for (const each of balancer.held ?? balancer.endpoints)
      if (!this.#singles.has(each)) this.#singles.set(each, destination);
  }

  /** Keeps a destination with the endpoints that its service has in this configuration. */
  #keep(destination: ServiceDestination): void {
    const { balancer, key, target } = destination;
    this.#ofServices.set(key, destination);
    if (this.#hasSameEndpoints(target.key)) this.#retain(balancer);
    else this.#moves.set(balancer, this.#balancer(destination));
  }

  /** Whether the configuration in effect chooses among the same endpoints of a service, and prefers the same ones. */
  #hasSameEndpoints(service: string): boolean {
    const before = this.#before;
    if (before?.services.isSame(service, this.#services.find(service)) !== true) return false;
    return isDeepStrictEqual(before.locality, this.#locality);
  }

  #retain(balancer: Balancer): void {
    for (const each of balancer.held ?? balancer.endpoints)
      if (!this.#held.has(each.key)) {
        this.#endpoints.retain(each);
        this.#held.set(each.key, each);
      }
  }

  /** Backends with the same single endpoint share a destination: with many routes, shared objects stay in the CPU's caches. */
  #single(target: Target, address: PoolTarget, check: HealthCheck | undefined): Destination {
    const endpoint = this.#hold(address, 1, check);
    let destination = this.#singles.get(endpoint);
    if (destination === undefined) {
      destination = { target, balancer: new SingleEndpoint(endpoint), key: "" };
      this.#singles.set(endpoint, destination);
    }
    return destination;
  }

  /** The same for a name, whose addresses are endpoints. Only requests of backends with affinity have a key. */
  #named(target: Target, address: FollowedTarget, check: HealthCheck | undefined): Destination {
    const names = this.#holdName(address, 1, check);
    let destination = this.#singles.get(names);
    if (destination === undefined) {
      const make = this.#maker(undefined, true, BY_RANK);
      const balancer = new NamesBalancer([[[names]]], (tiers) => {
        const [first, ...others] = tiers.flat(2);
        return first !== undefined && others.length === 0 ? new SingleEndpoint(first) : make(tiers);
      });
      destination = { target, balancer, key: "" };
      this.#singles.set(names, destination);
    }
    return destination;
  }

  #ofService(
    target: ServiceTarget,
    settings: ConnectionSettings,
    affinity: boolean,
    check: HealthCheck | undefined,
  ): Destination {
    const key = `${target.key} ${portOf(target)} ${affinity} ${settingsIdentity(settings)} ${check?.identity ?? ""}`;
    const known = this.#ofServices.get(key);
    if (known !== undefined) return known;
    const before = this.#before?.ofServices.get(key);
    if (before !== undefined) {
      this.#keep(before);
      return before;
    }
    const balancer = new MovableBalancer(this.#balancer({ target, settings, affinity, check }));
    const destination = { target, balancer, key, settings, affinity, check };
    this.#ofServices.set(key, destination);
    return destination;
  }

  #balancer({ target, settings, affinity, check }: Omit<ServiceDestination, "balancer" | "key">): Balancer {
    const { service, workloads } = this.#services.find(target.key) ?? { service: undefined, workloads: [] };
    const near = localityTiers(service ?? {}, workloads, this.#locality);
    const version = settings.version ?? versionOf(service?.appProtocols?.[portOf(target)]);
    const how = version === undefined ? settings : { ...settings, version };
    const hold = (workload: Workload): Held[] =>
      addressesOf(workload, target, service).map((address) => this.#holdAddress(address, workload, how, check));
    const tiers = near.map((tier) => tier.map((bucket) => bucket.flatMap(hold)));
    const order = orderOf(service ?? {}, workloads, near, this.#locality);
    const make = this.#maker(service?.loadBalancer, affinity, order);
    return isFixed(tiers) ? make(tiers) : new NamesBalancer(tiers, make);
  }

  /** Makes balancers, also after this configuration is complete: it must not keep the rest of it. */
  #maker(loadBalancer: LoadBalancer | undefined, affinity: boolean, order?: BucketOrder): MakeBalancer {
    const all = this.#endpoints;
    const random = this.#random;
    return (tiers) => {
      if (balancesByLoad(loadBalancer)) all.shareLoads(tiers.flat(2));
      return serviceBalancer(tiers, loadBalancer, affinity, random, order);
    };
  }

  #holdAddress(
    address: Address,
    { capacity, uid }: Workload,
    how: ConnectionSettings,
    check: HealthCheck | undefined,
  ): Held {
    const to: PoolTarget = { ...address, ...(isTunnelled(address) ? how : { ...how, tunnel: undefined }) };
    return isFollowed(to) ? this.#holdName(to, capacity, check, uid) : this.#hold(to, capacity, check, uid);
  }

  /** `owner` distinguishes two workloads at one address, which have separate healths. */
  #hold(target: PoolTarget, capacity: number, check: HealthCheck | undefined, owner?: string): Endpoint {
    const key = endpointKey(target, capacity, owner, check?.identity);
    const known = this.#held.get(key);
    if (known instanceof Endpoint) return known;
    const endpoint = this.#endpoints.acquire(target, capacity, owner, check);
    this.#held.set(key, endpoint);
    return endpoint;
  }

  #holdName(target: FollowedTarget, weight: number, check: HealthCheck | undefined, owner?: string): NamedEndpoints {
    const key = namedKey(target, weight, owner, check?.identity);
    const known = this.#held.get(key);
    if (known instanceof NamedEndpoints) return known;
    const names = this.#endpoints.acquireName(target, weight, owner, check);
    this.#held.set(key, names);
    return names;
  }
}

/** Whether there are no names, whose addresses may change. */
function isFixed(tiers: Tiers<Held>): tiers is Tiers<Endpoint> {
  return tiers.flat(2).every((each) => each instanceof Endpoint);
}

/** `near`: the workloads that may get requests, in their order. */
function orderOf(
  service: Pick<Service, "loadBalancer">,
  workloads: readonly Workload[],
  near: Tiers<Workload>,
  own: Locality,
): BucketOrder {
  if (near[0]?.[0]?.length === workloads.length) return BY_RANK;
  const owner = ({ key }: Endpoint): Workload | undefined => workloads.find(({ uid }) => isOwner(key, uid));
  return {
    whyBehind(endpoint) {
      const why = BY_RANK.whyBehind(endpoint);
      if (why !== "") return why;
      const workload = owner(endpoint);
      return workload === undefined ? "" : whyBehind(service, workload, own);
    },
    excluded() {
      const used = new Set(near.flat(2));
      const others = workloads.filter((workload) => !used.has(workload));
      return others.map((workload) => ({ name: workload.name, why: whyBehind(service, workload, own) }));
    },
  };
}

/** Proxies connect to hosts: the other endpoints of a pool are reached without the tunnel of its route, as other backends are. */
function isTunnelled(address: Address): boolean {
  return "host" in address && address.srv === undefined;
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

/** Limits of `http` take precedence over those of `tcp`, which are meant for bytes without HTTP. */
function limitsOf(tcp: PoolLimits = {}, http: PoolLimits = {}): Pick<ConnectionSettings, "limits"> {
  const maxConnections = http.maxConnections ?? tcp.maxConnections;
  const maxPendingRequests = http.maxPendingRequests ?? tcp.maxPendingRequests;
  const { maxRequests } = http;
  if (maxConnections === undefined && maxPendingRequests === undefined && maxRequests === undefined) return {};
  return { limits: { maxConnections, maxPendingRequests, maxRequests } };
}

/**
 * `appProtocols` of services that say which version of HTTP is spoken (docs/configuration.md#service); others say nothing about
 * it.
 */
const VERSIONS: ReadonlyMap<string, HttpVersion> = new Map([
  ["http1", "HTTP/1.1"],
  ["http2", "HTTP/2.0"],
  ["grpc", "HTTP/2.0"],
  ["kubernetes.io/h2c", "HTTP/2.0"],
]);

function versionOf(appProtocol: string | undefined): HttpVersion | undefined {
  return appProtocol === undefined ? undefined : VERSIONS.get(appProtocol.toLowerCase());
}

/** The service or pool whose workloads are the proxies of a tunnel: a change of them changes how connections are made. */
export function proxyService({ backendTunnel }: DestinationPolicies): string | undefined {
  const proxy = backendTunnel?.proxy;
  return proxy?.type === "service" || proxy?.type === "pool" ? proxy.key : undefined;
}

/** Every healthy workload of a service may be the proxy, unless it is drained. */
function proxiesAt(target: Target, services: ServiceIndex): Address[] {
  if (target.type === "static") {
    const { type: _, ...address } = target;
    return [address];
  }
  if (target.type === "unix") return [{ path: target.path }];
  if (target.type !== "service" && target.type !== "pool") return [];
  const { service, workloads } = services.find(target.key) ?? { service: undefined, workloads: [] };
  const usable = workloads.filter(({ status, capacity }) => status === "healthy" && capacity > 0);
  return usable.flatMap((workload) => addressesOf(workload, target, service));
}

/** `` for a pool, whose endpoints have a port each. */
function portOf(target: ServiceTarget): number | "" {
  return target.type === "pool" ? "" : target.port;
}

/**
 * A workload may set its own port for a port of a service; otherwise that of the service applies. Without either, it does not serve
 * that port.
 */
function addressesOf(
  { address, services, workloadIps, hostname }: Workload,
  target: ServiceTarget,
  service: Service | undefined,
): Address[] {
  if (address !== undefined) return [address];
  const port = portOf(target);
  const targetPort = services[target.key]?.[port] ?? service?.ports[port];
  if (targetPort === undefined) return [];
  if (workloadIps.length > 0) return workloadIps.map((host) => ({ host, port: targetPort, discovered: true }));
  return hostname ? [{ host: hostname, port: targetPort }] : [];
}
