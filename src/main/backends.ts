import {
  type BackendsAnswer,
  type BackendsQuery,
  type BackendView,
  type EndpointView,
  isFailing,
  type Shortened,
} from "../admin/plane/backends.ts";
import { type Locate, withPlace } from "../base/origin.ts";
import { backendName } from "../ir/backend-name.ts";
import type { Ir } from "../ir/ir.ts";
import type { HealthHistory } from "../telemetry/health-history.ts";
import { isPool, type Service, serviceKey } from "../upstream/discovery/discovery.ts";
import type { Resolved } from "../upstream/endpoints/endpoint.ts";
import type { EndpointStats } from "../upstream/endpoints/endpoints.ts";
import type { KnownName } from "../upstream/resolve/resolver.ts";
import { targetName } from "../upstream/settings/pool-target.ts";
import { type BackendUse, backendsOf, type UsedBackend } from "./backend-uses.ts";
import { combined, EndpointsDump, type LiveEndpoints, type SeenEndpoint, type SeenWorkload } from "./endpoints-dump.ts";

/** How many endpoints and routes of a backend are shown. */
interface Bounds {
  readonly endpoints: number;
  readonly routes: number;
}

const IN_LIST: Bounds = { endpoints: 32, routes: 16 };
const ALONE: Bounds = { endpoints: 10_000, routes: 1000 };

/** What backends are shown with, besides the configuration. */
interface LiveBackends extends LiveEndpoints {
  readonly history: HealthHistory;
  readonly locate: Locate;
  readonly generation: number;
}

/** The backends and services of a configuration, with the state of their endpoints. */
export class BackendViews {
  readonly #ir: Ir;
  readonly #live: LiveBackends;
  readonly #endpoints: EndpointsDump;

  constructor(ir: Ir, live: LiveBackends) {
    this.#ir = ir;
    this.#live = live;
    this.#endpoints = new EndpointsDump(ir, live);
  }

  list({ find, failing = false, limit }: BackendsQuery): BackendsAnswer {
    const found = this.#entries().filter((entry) => {
      if (failing && !entry.endpoints.some(({ view }) => isFailing(view))) return false;
      if (find === undefined || entry.key.includes(find) || entry.name.includes(find)) return true;
      return entry.endpoints.some(({ view }) => view.addresses.some((address) => address.includes(find)));
    });
    const backends = { total: found.length, shown: found.slice(0, limit).map((entry) => this.#view(entry, IN_LIST)) };
    return { generation: this.#live.generation, backends };
  }

  one(key: string): BackendView | undefined {
    const entry = this.#entry(key);
    return entry && this.#view(entry, ALONE);
  }

  /** The keys of its endpoints that workers know, those that get no requests first, and how many endpoints it has. */
  endpointsOf(key: string): { readonly keys: readonly string[]; readonly total: number } | undefined {
    const endpoints = this.#entry(key)?.endpoints;
    return endpoints && { keys: failingFirst(endpoints).flatMap(({ keys }) => keys), total: endpoints.length };
  }

  #entry(key: string): Entry | undefined {
    return this.#entries().find((each) => each.key === key);
  }

  /** A target that routes of several listeners share is one entry. */
  #entries(): Entry[] {
    const used = backendsOf(this.#ir);
    const uses = used.flatMap(({ isNamed, backend }) => (isNamed || !("route" in backend) ? [] : [backend]));
    const named = used.filter(({ isNamed }) => isNamed).flatMap((each) => each.uses);
    const ofServices = Map.groupBy([...named, ...uses], ({ target }) => (target.type === "service" ? target.key : ""));
    const services = new Map(this.#ir.services.map((service) => [serviceKey(service), service]));
    const backends = new Map(used.map((each) => [each.backend.key, each]));
    return [
      ...[...backends.values()].flatMap((each) => this.#backend(each, services)),
      ...this.#ir.services
        .filter((service) => !isPool(service))
        .map((service) => this.#service(service, ofServices.get(serviceKey(service)) ?? [])),
    ];
  }

  /** None for what is shown elsewhere: services that routes name, and route groups. */
  #backend({ backend, isNamed, uses }: UsedBackend, services: ReadonlyMap<string, Service>): Entry[] {
    const { key, target, origin } = backend;
    if (target.type === "routeGroup" || (target.type === "service" && !isNamed)) return [];
    const seen = this.#endpoints.ofBackend([backend, ...uses]) ?? [];
    const service = target.type === "service" || target.type === "pool" ? services.get(target.key) : undefined;
    const endpoints = service === undefined ? seen.map((each) => this.#endpoint(each.seen)) : this.#workloads(service);
    return [{ key, name: backendName(backend), kind: target.type, origin, endpoints, uses, counted: [key] }];
  }

  #service(service: Service, uses: readonly BackendUse[]): Entry {
    const key = `service/${serviceKey(service)}`;
    const counted = [...new Set(uses.map((use) => use.key))];
    const endpoints = this.#workloads(service);
    return { key, name: serviceKey(service), kind: "service", origin: undefined, endpoints, uses, counted };
  }

  #workloads(service: Service): EntryEndpoint[] {
    return this.#endpoints.ofService(service).map((seen) => {
      const { keys, view } = this.#endpoint(seen);
      const isNotReady = seen.workload.status === "unhealthy" && seen.rank === undefined;
      const { backup } = seen.workload;
      const { behind } = seen;
      const order = backup ? { backup } : { ...(behind !== "" && !isNotReady && { behind }) };
      if (isPool(service)) return { keys, view: { ...view, ...order } };
      return {
        keys,
        view: { ...view, ...order, workload: workloadOf(seen), ...(isNotReady && { state: "notReady" }) },
      };
    });
  }

  #endpoint(seen: SeenEndpoint): EntryEndpoint {
    const keys = seen.stats.map(({ key }) => key);
    return { keys, view: this.#endpointView(seen, this.#live.history.of(keys)) };
  }

  #endpointView({ addresses, capacity, stats: all }: SeenEndpoint, changes: EndpointView["changes"]): EndpointView {
    const stats = combined(all);
    const { evictedMs = null, check, pool, name, limits, resolved, countsAlone } = stats ?? {};
    const eviction = changes.find(({ state }) => state === "evicted");
    return {
      addresses: addresses.map(targetName),
      state: stateOf(stats),
      ...(evictedMs !== null && {
        evicted: {
          until: Math.round(Date.now() + evictedMs),
          ...(eviction?.state === "evicted" && eviction.cause && { cause: eviction.cause }),
        },
      }),
      ...(check && {
        check: { ...(check.reason !== "" && { reason: check.reason }), passed: check.passed, failed: check.failed },
      }),
      changes,
      health: stats?.health ?? 1,
      latency: stats?.latency ?? 0,
      active: stats?.pending ?? 0,
      requests: stats?.total ?? 0,
      consecutiveFailures: stats?.consecutiveFailures ?? 0,
      weight: capacity,
      ...(pool && {
        pool: { active: pool.active, idle: pool.idle, connecting: pool.connecting, waiting: pool.waiting },
      }),
      ...((name ?? resolved) && { name: nameView(name, resolved) }),
      ...(limits && { limits: limitsView(limits, (stats?.overflows ?? 0) + (pool?.overflows ?? 0)) }),
      ...(countsAlone && { perWorker: true as const }),
    };
  }

  #view({ key, name, kind, origin, endpoints, uses, counted }: Entry, bounds: Bounds): BackendView {
    const { locate, calls } = this.#live;
    const routes = uses.map(({ route, weight, origin }) => ({
      key: route.key,
      name: `${route.namespace}/${route.name}`,
      ...(route.ruleName !== undefined && { rule: route.ruleName }),
      weight,
      ...(origin && { origin }),
    }));
    const { shown, total } = shortened(routes, bounds.routes);
    return withPlace(
      {
        key,
        name,
        kind,
        ...(origin && { origin }),
        requests: counted.reduce((sum, each) => sum + (calls.get(each) ?? 0), 0),
        failing: endpoints.filter(({ view }) => isFailing(view)).length,
        endpoints: shortened(
          failingFirst(endpoints).map(({ view }) => view),
          bounds.endpoints,
        ),
        routes: { total, shown: shown.map((route) => withPlace(route, locate)) },
      },
      locate,
    );
  }
}

/** A backend or service, before its lists are shortened and its places are looked up. */
interface Entry extends Pick<BackendView, "key" | "name" | "kind"> {
  readonly origin: BackendView["origin"];
  readonly endpoints: readonly EntryEndpoint[];
  readonly uses: readonly BackendUse[];
  /** The keys under which its requests are counted. */
  readonly counted: readonly string[];
}

interface EntryEndpoint {
  /** Of the endpoints of workers that are shown as this one: one for each way to connect. */
  readonly keys: readonly string[];
  readonly view: EndpointView;
}

function stateOf(stats: EndpointStats | undefined): EndpointView["state"] {
  if (stats === undefined) return "unused";
  if (stats.check?.healthy === false) return "unhealthy";
  if (stats.evictedMs !== null) return "evicted";
  if (stats.name?.error !== undefined && stats.name.addresses.length === 0) return "unresolved";
  return stats.check !== null && stats.check.healthy === undefined ? "pending" : "healthy";
}

/** Without `known`, the addresses come from workers that have looked the name up and do not have the endpoint any more. */
function nameView(known: KnownName | undefined, resolved: Resolved | undefined): NonNullable<EndpointView["name"]> {
  const { addresses = resolved?.address.at ?? [], ageMs = null, error } = known ?? {};
  return {
    ...(resolved && { host: resolved.host }),
    addresses,
    ...(ageMs !== null && { foundAt: Math.round(Date.now() - ageMs) }),
    ...(error !== undefined && { error }),
    ...(resolved?.address.rank && { rank: resolved.address.rank }),
    ...(resolved?.omitted && { omitted: resolved.omitted }),
  };
}

function limitsView({ connections, waiting, requests }: EndpointStats["limits"], rejected: number) {
  return { connections, waiting, requests, rejected };
}

function failingFirst(endpoints: readonly EntryEndpoint[]): readonly EntryEndpoint[] {
  return endpoints.toSorted((a, b) => Number(isFailing(b.view)) - Number(isFailing(a.view)));
}

function workloadOf({ workload, rank }: SeenWorkload): NonNullable<EndpointView["workload"]> {
  const { name, node, locality = {} } = workload;
  return {
    name,
    ...(locality.region !== undefined && { region: locality.region }),
    ...(locality.zone !== undefined && { zone: locality.zone }),
    ...(node !== undefined && { node }),
    ...(rank !== undefined && { rank }),
  };
}

function shortened<T>(list: readonly T[], limit: number): Shortened<T> {
  return { total: list.length, shown: list.slice(0, limit) };
}
