import type { Backend, Ir } from "../ir/ir.ts";
import { connectionOf } from "../upstream/destinations/destinations.ts";
import { type Service, ServiceIndex, serviceKey, type Workload } from "../upstream/discovery/discovery.ts";
import { type Locality, localityBuckets } from "../upstream/discovery/locality.ts";
import type { CheckStats } from "../upstream/endpoints/endpoint.ts";
import { byOwner, combineStats, type EndpointStats, endpointKey } from "../upstream/endpoints/endpoints.ts";
import { checkIdentity } from "../upstream/endpoints/health-check.ts";
import { targetName } from "../upstream/settings/pool-target.ts";

type Json = Readonly<Record<string, unknown>>;

/** The state of endpoints, merged over workers. */
export interface LiveEndpoints {
  readonly endpoints: ReadonlyMap<string, EndpointStats>;
  /** Calls by the key of the backend. */
  readonly calls: ReadonlyMap<string, number>;
  /** Where this gateway runs. */
  readonly locality: Locality;
}

/** The endpoints of one dump; indexes services and statistics once for all services and backends. */
export class EndpointsDump {
  readonly #live: LiveEndpoints;
  readonly #services: ServiceIndex;
  /** Statistics of the endpoints of a workload by its uid. */
  readonly #byWorkload: (uid: string) => readonly EndpointStats[];

  constructor({ services, workloads }: Pick<Ir, "services" | "workloads">, live: LiveEndpoints) {
    this.#live = live;
    this.#services = new ServiceIndex(services, workloads);
    this.#byWorkload = byOwner(live.endpoints.values());
  }

  /**
   * A service, with one element of `endpoints` for each bucket of near and far workloads; workloads that get no requests are in
   * the last.
   */
  service(service: Service): Json {
    const workloads = this.#services.find(serviceKey(service))?.workloads ?? [];
    const buckets = localityBuckets(service, workloads, this.#live.locality);
    const used = new Set(buckets.flat());
    const unused = workloads.filter((workload) => !used.has(workload));
    const shown = [...buckets.slice(0, -1), [...(buckets.at(-1) ?? []), ...unused]];
    return {
      ...service,
      endpoints: shown.map((bucket) => partition(bucket.flatMap((workload) => this.#workload(workload, service)))),
    };
  }

  /** One entry, or one for each address if there are several; connections that differ in TLS only are combined. */
  #workload(workload: Workload, service: Service): DumpedEndpoint[] {
    const { uid, status, capacity, workloadIps, hostname } = workload;
    const key = serviceKey(service);
    const port = workload.services[key];
    const shown = { endpoint: { workloadUid: uid, port, status }, capacity };
    const hosts = workloadIps.length > 0 ? workloadIps : [hostname ?? ""];
    const ports = Object.values({ ...service.ports, ...port });
    const known = this.#byWorkload(uid);
    return hosts.map((host) => {
      const targets = new Set(ports.map((each) => targetName({ host, port: each })));
      const stats = known.filter(({ target }) => targets.has(target));
      return {
        key: hosts.length === 1 ? `${uid}:${key}` : `${uid}:${key}:${host}`,
        shown,
        stats: stats.length === 0 ? undefined : stats.reduce(combineStats),
      };
    });
  }

  /**
   * The one endpoint of a static backend, in the shape of a service's endpoints. `uses` are the backend and what refers to it:
   * different policies have different connections, whose statistics are combined.
   */
  backend(uses: readonly Pick<Backend, "key" | "target" | "policies">[]): Json {
    const [first] = uses;
    if (first === undefined || (first.target.type !== "static" && first.target.type !== "unix")) return {};
    const address = first.target;
    const keys = new Set(
      uses.map(({ policies }) =>
        endpointKey({ ...address, ...connectionOf(policies, this.#services) }, 1, "", checkIdentity(policies)),
      ),
    );
    const shared = [...keys].flatMap((key) => this.#live.endpoints.get(key) ?? []);
    // Other backends may send to the same endpoints: the count is this backend's own.
    const total = this.#live.calls.get(first.key) ?? 0;
    const stats = shared.length === 0 ? undefined : { ...shared.reduce(combineStats), total };
    return { endpoints: [partition([{ key: targetName(address), shown: { capacity: 1 }, stats }])] };
  }
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
