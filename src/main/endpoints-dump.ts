import { withDurations } from "../base/durations.ts";
import type { Backend, Ir } from "../ir/ir.ts";
import { connectionOf } from "../upstream/destinations/destinations.ts";
import { type Service, ServiceIndex, serviceKey, type Workload } from "../upstream/discovery/discovery.ts";
import { type Locality, localityTiers, whyBehind } from "../upstream/discovery/locality.ts";
import type { CheckStats } from "../upstream/endpoints/endpoint.ts";
import { byOwner, combineStats, type EndpointStats, endpointKey, namedKey } from "../upstream/endpoints/endpoints.ts";
import { checkIdentity } from "../upstream/endpoints/health-check.ts";
import { type Address, isFollowed, targetName } from "../upstream/settings/pool-target.ts";

type Json = Readonly<Record<string, unknown>>;

/** The state of endpoints, merged over workers. */
export interface LiveEndpoints {
  readonly endpoints: ReadonlyMap<string, EndpointStats>;
  /** Calls by the key of the backend. */
  readonly calls: ReadonlyMap<string, number>;
  /** Where this gateway runs. */
  readonly locality: Locality;
}

/** An endpoint as it was configured, and what workers know about it. */
export interface SeenEndpoint {
  readonly addresses: readonly Address[];
  readonly capacity: number;
  /** One for each way to connect to it; empty: no worker uses it yet. */
  readonly stats: readonly EndpointStats[];
}

/** An endpoint by the text of its address. */
interface SeenAt {
  readonly host: string;
  readonly seen: SeenEndpoint;
}

/** An address of a workload behind a service. */
export interface SeenWorkload extends SeenEndpoint {
  readonly workload: Workload;
  /** Index of its bucket of near and far workloads; undefined: it gets no requests. */
  readonly rank: number | undefined;
  /** Why that is not the first one; `` if it is. */
  readonly behind: string;
}

/** The endpoints of one configuration; indexes services and statistics once for all services and backends. */
export class EndpointsDump {
  readonly #live: LiveEndpoints;
  readonly #services: ServiceIndex;
  /** Statistics of the endpoints of a workload by its uid. */
  readonly #byWorkload: (uid: string) => readonly EndpointStats[];

  /** Statistics of the addresses of a name by the key of its endpoints. */
  readonly #byName: ReadonlyMap<string | undefined, readonly EndpointStats[]>;

  constructor({ services, workloads }: Pick<Ir, "services" | "workloads">, live: LiveEndpoints) {
    this.#live = live;
    this.#services = new ServiceIndex(services, workloads);
    this.#byWorkload = byOwner(live.endpoints.values());
    this.#byName = Map.groupBy(live.endpoints.values(), ({ resolved }) => resolved?.of);
  }

  /**
   * A service, with one element of `endpoints` for each bucket of near and far workloads; workloads that get no requests are in
   * the last.
   */
  service(service: Service): Json {
    return { ...service, ...balancingOf(service), endpoints: this.#endpointsOf(service) };
  }

  #endpointsOf(service: Service): Json[] {
    const { buckets, unused } = this.#bucketsOf(service);
    const shown = [...buckets.slice(0, -1), [...(buckets.at(-1) ?? []), ...unused]];
    return shown.map((bucket) => partition(bucket.flatMap((workload) => this.#dumped(workload, service))));
  }

  /** The addresses of a service, the nearest first and those that get no requests last. */
  ofService(service: Service): SeenWorkload[] {
    const { buckets, unused } = this.#bucketsOf(service);
    const seen = (workload: Workload, rank?: number): SeenWorkload[] => {
      const behind = rank === 0 ? "" : whyBehind(service, workload, this.#live.locality);
      return this.#addresses(workload, service).map(({ seen }) => ({ ...seen, workload, rank, behind }));
    };
    const used = buckets.flatMap((bucket, rank) => bucket.flatMap((workload) => seen(workload, rank)));
    return [...used, ...unused.flatMap((workload) => seen(workload))];
  }

  #bucketsOf(service: Service): {
    readonly buckets: readonly (readonly Workload[])[];
    readonly unused: readonly Workload[];
  } {
    const workloads = this.#services.find(serviceKey(service))?.workloads ?? [];
    const buckets = localityTiers(service, workloads, this.#live.locality).flat();
    const used = new Set(buckets.flat());
    return { buckets, unused: workloads.filter((workload) => !used.has(workload)) };
  }

  /** One entry, or one for each address if there are several. */
  #dumped(workload: Workload, service: Service): DumpedEndpoint[] {
    const { uid, status, capacity, address, locality } = workload;
    const key = serviceKey(service);
    if (address !== undefined)
      return this.#addresses(workload, service).map(({ host, seen }) => ({
        key: host,
        shown: { capacity, ...(locality && { locality }) },
        stats: combined(seen.stats),
      }));
    const shown = { endpoint: { workloadUid: uid, port: workload.services[key], status }, capacity };
    const all = this.#addresses(workload, service);
    return all.map(({ host, seen }) => ({
      key: all.length === 1 ? `${uid}:${key}` : `${uid}:${key}:${host}`,
      shown,
      stats: combined(seen.stats),
    }));
  }

  #addresses(workload: Workload, service: Service): SeenAt[] {
    const { uid, capacity, workloadIps, hostname, address } = workload;
    if (address !== undefined) return seenAt(address, capacity, this.#byWorkload(uid));
    const ports = new Set(Object.values({ ...service.ports, ...workload.services[serviceKey(service)] }));
    const known = this.#byWorkload(uid);
    if (workloadIps.length === 0 && hostname !== undefined)
      return [...ports].flatMap((port) => {
        const address = { host: hostname, port };
        const own = known.filter((stats) => (stats.resolved?.target ?? stats.target) === targetName(address));
        return seenAt(address, capacity, own);
      });
    const hosts = workloadIps.length > 0 ? workloadIps : [""];
    return hosts.map((host) => {
      const addresses = Array.from(ports, (port) => ({ host, port }));
      const targets = new Set(addresses.map(targetName));
      return { host, seen: { addresses, capacity, stats: known.filter(({ target }) => targets.has(target)) } };
    });
  }

  /** The endpoints of a pool, or the one of a static backend (see `ofBackend`), in the shape of a service's endpoints. */
  backend(uses: readonly BackendLike[]): Json {
    const [first] = uses;
    const all = this.ofBackend(uses);
    const pool = first?.target.type === "pool" ? this.#services.find(first.target.key)?.service : undefined;
    if (pool !== undefined) return { ...balancingOf(pool), endpoints: this.#endpointsOf(pool) };
    if (first === undefined || all === undefined) return {};
    // Other backends may send to the same endpoint: the count is this backend's own.
    const total = all.length > 1 ? undefined : this.#live.calls.get(first.key);
    const dumped = all.map(({ host, seen: { capacity, stats } }): DumpedEndpoint => {
      const shared = combined(stats);
      return { key: host, shown: { capacity }, stats: shared && { ...shared, total: total ?? shared.total } };
    });
    return { endpoints: [partition(dumped)] };
  }

  /**
   * The endpoint of a static backend, or those of its name; undefined for others. `uses` are the backend and what refers to it: different
   * policies have different connections.
   */
  ofBackend(uses: readonly BackendLike[]): readonly SeenAt[] | undefined {
    const [first] = uses;
    if (first === undefined || (first.target.type !== "static" && first.target.type !== "unix")) return undefined;
    const { type: _, ...address } = first.target;
    const stats = new Map<string, EndpointStats>();
    for (const { policies } of uses) {
      const target = { ...address, ...connectionOf(policies, this.#services) };
      const check = checkIdentity(policies);
      const whole = this.#live.endpoints.get(endpointKey(target, 1, "", check));
      const named = isFollowed(target) ? (this.#byName.get(namedKey(target, 1, "", check)) ?? []) : [];
      for (const each of [...(whole === undefined ? [] : [whole]), ...named]) stats.set(each.key, each);
    }
    return seenAt(address, 1, [...stats.values()]);
  }
}

/** The endpoint at an address; if it is a name, and workers know its addresses, each of those. */
function seenAt(address: Address, capacity: number, stats: readonly EndpointStats[]): SeenAt[] {
  const found = stats.filter(({ resolved }) => resolved !== undefined);
  if ("path" in address || found.length === 0)
    return [{ host: targetName(address), seen: { addresses: [address], capacity, stats } }];
  return [...Map.groupBy(found, ({ target }) => target)].map(([host, own]) => {
    const { address: { at = [], port = address.port } = {}, weight = capacity } = own[0]?.resolved ?? {};
    const addresses = at.map((each) => ({ host: each, port }));
    return { host, seen: { addresses, capacity: weight, stats: own } };
  });
}

type BackendLike = Pick<Backend, "key" | "target" | "policies">;

/** undefined: no worker uses the endpoint yet. */
export function combined(stats: readonly EndpointStats[]): EndpointStats | undefined {
  return stats.length === 0 ? undefined : stats.reduce(combineStats);
}

interface DumpedEndpoint {
  readonly key: string;
  readonly shown: Json;
  /** undefined: no worker uses it yet. */
  readonly stats: EndpointStats | undefined;
}

/** Evicted endpoints, and those whose active health checks fail, are `rejected` (reference 3.28). */
function partition(endpoints: readonly DumpedEndpoint[]): Json {
  const active: Record<string, unknown> = {};
  const rejected: Record<string, unknown> = {};
  for (const { key, shown, stats } of endpoints) {
    const used = (stats?.evictedMs ?? null) === null && stats?.check?.healthy !== false;
    const group = used ? active : rejected;
    group[key] = { ...shown, info: endpointInfo(stats) };
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
    ...(stats?.check && { activeHealth: activeHealth(stats.check) }),
  };
}

/** `pending` until the first probe has ended, and while no worker uses the endpoint. */
function activeHealth({ healthy, reason, passed, failed }: CheckStats): Json {
  const state = healthy === undefined ? "pending" : healthy ? "healthy" : "unhealthy";
  return { state, ...(reason !== "" && { reason }), probes: passed + failed, failedProbes: failed };
}

function balancingOf({ loadBalancer }: Service): Json {
  return loadBalancer === undefined ? {} : { loadBalancer: withDurations(loadBalancer, "slowStart") };
}
