import { ProcessCount } from "../loads/process-count.ts";
import type { SharedLoads } from "../loads/shared-loads.ts";
import type { PoolUse } from "../pools/pool.ts";
import type { Pools } from "../pools/pools.ts";
import { FollowedName } from "../resolve/followed-name.ts";
import type { KnownName } from "../resolve/resolver.ts";
import { type FollowedTarget, type PoolTarget, poolKey } from "../settings/pool-target.ts";
import {
  type CheckStats,
  Endpoint,
  type EvictionNotice,
  Evictions,
  type HealthNotice,
  type Resolved,
} from "./endpoint.ts";
import type { CheckedEndpoints, HealthCheck } from "./health-check.ts";
import { NamedEndpoints, type NamesNotice } from "./named-endpoints.ts";
import type { RetryBudget } from "./retry-budget.ts";

/** The state of one endpoint, for the dump. */
export interface EndpointStats {
  readonly key: string;
  readonly target: string;
  readonly health: number;
  /** Seconds. */
  readonly latency: number;
  readonly pending: number;
  readonly total: number;
  readonly consecutiveFailures: number;
  readonly timesEjected: number;
  /** Milliseconds until it gets calls again; null = not evicted. */
  readonly evictedMs: number | null;
  /** Calls rejected because of `maxRequests`. */
  readonly overflows: number;
  /** State of its active health check; null = it has none. */
  readonly check: CheckStats | null;
  readonly pool: PoolUse;
  /** Its host name as it was looked up; absent for addresses, and while no connection is opened. */
  readonly name?: KnownName;
  /** Present if it is an address of a name. */
  readonly resolved?: Resolved;
  readonly limits: EndpointLimits;
  /** The thread counts alone what it should count with the others: there is no room in the table that they share. */
  readonly countsAlone: boolean;
}

/** How many of each there may be at a time. */
interface EndpointLimits {
  /** Connections of the thread, unused ones included. */
  readonly connections: number;
  /** Requests that wait for a connection. */
  readonly waiting: number;
  /** Requests in progress; null = no limit. */
  readonly requests: number | null;
  /** The limits that hold for all threads together. */
  readonly shared: { readonly waiting: boolean; readonly requests: boolean };
}

/**
 * Counts the calls to one backend over all its endpoints, whose own counts include the calls of other backends. A reload that keeps
 * the backend keeps the count.
 */
export class BackendCalls {
  total = 0;
  /** Requests in progress that have been retried; counted only if that is limited. */
  readonly retrying = new ProcessCount();
}

interface Counted {
  readonly endpoint: Endpoint;
  users: number;
}

interface CountedName {
  readonly names: NamedEndpoints;
  users: number;
}

type Naming = Pick<ConstructorParameters<typeof NamedEndpoints>[4], "follow" | "onFound">;

/** What a configuration holds. */
export type Held = Endpoint | NamedEndpoints;

/** The endpoints of a thread, with a count of their users like pools, so that health and latency survive a reload. */
export class Endpoints {
  readonly #pools: Pools;
  readonly #known = new Map<string, Counted>();
  readonly #names = new Map<string, CountedName>();
  readonly #named = { total: 0 };
  readonly #naming: Naming;
  /** What other threads have found, kept for names that are added later. */
  readonly #learned = new Map<string, NamesNotice>();
  /** Evictions of endpoints that do not exist here yet: a new worker gets them before its configuration. */
  readonly #early = new Evictions();
  /** Results of active health checks, kept for endpoints that are added later. */
  readonly #healths = new Map<string, HealthNotice>();
  readonly #checks: CheckedEndpoints | undefined;
  readonly #loads: SharedLoads | undefined;
  /** Counts of the configuration in effect, by the key of the backend. */
  calls: ReadonlyMap<string, BackendCalls> = new Map();
  /** The same for retry budgets, by their own keys. */
  budgets: ReadonlyMap<string, RetryBudget> = new Map();
  readonly #onEvicted: ((notice: EvictionNotice) => void) | undefined;

  /**
   * `onEvicted` is called for evictions by this thread, which have to be passed on to the others. `checks` gets the endpoints to probe.
   * `loads`: of all threads that serve the same configuration; without it, this one is alone.
   * `naming`: by default, names are looked up, and nobody is told.
   */
  constructor(
    pools: Pools,
    onEvicted?: (notice: EvictionNotice) => void,
    checks?: CheckedEndpoints,
    loads?: SharedLoads,
    naming: Partial<Naming> = {},
  ) {
    this.#loads = loads;
    this.#pools = pools;
    this.#naming = {
      follow: (name, onAddresses) => new FollowedName(name, pools.resolver, onAddresses),
      onFound: () => {},
      ...naming,
    };
    this.#onEvicted = onEvicted;
    this.#checks = checks;
  }

  /** An endpoint; each call needs a `release`. `owner` distinguishes two workloads at one address. */
  acquire(target: PoolTarget, capacity: number, owner = "", check?: HealthCheck): Endpoint {
    return this.#acquire(endpointKey(target, capacity, owner, check?.identity), target, capacity, check);
  }

  /** The endpoints of a name; each call needs a `release`. */
  acquireName(target: FollowedTarget, weight: number, owner = "", check?: HealthCheck): NamedEndpoints {
    const key = namedKey(target, weight, owner, check?.identity);
    let counted = this.#names.get(key);
    if (counted === undefined) {
      const names = new NamedEndpoints(key, target, weight, check !== undefined, {
        ...this.#naming,
        acquireWhole: () => this.acquire(target, weight, owner, check),
        acquire: ({ at, port = target.port }) =>
          this.#acquire(`${key} ${at.join()} ${port}`, { ...target, at, port }, weight, check),
        release: (endpoints) => this.release(endpoints),
        count: this.#named,
      });
      names.learn(this.#learned.get(key)?.addresses ?? []);
      counted = { names, users: 0 };
      this.#names.set(key, counted);
    }
    counted.users++;
    return counted.names;
  }

  #acquire(key: string, target: PoolTarget, capacity: number, check: HealthCheck | undefined): Endpoint {
    let counted = this.#known.get(key);
    if (counted === undefined) {
      const endpoint = new Endpoint(key, this.#pools.acquire(target), capacity, this.#onEvicted);
      const now = performance.now();
      const notice = this.#early.take(key, now);
      if (notice !== undefined) endpoint.evict(notice, now);
      if (check !== undefined) this.#begin(endpoint, check);
      if (Number.isFinite(endpoint.maxRequests)) this.#share(endpoint);
      if (this.#loads !== undefined && !endpoint.pool.shareLimits(this.#loads)) endpoint.countsAlone = true;
      counted = { endpoint, users: 0 };
      this.#known.set(key, counted);
    }
    counted.users++;
    return counted.endpoint;
  }

  #begin(endpoint: Endpoint, check: HealthCheck): void {
    endpoint.check = { healthy: undefined, reason: "", passed: 0, failed: 0 };
    const known = this.#healths.get(endpoint.key);
    if (known !== undefined) endpoint.setHealth(known);
    this.#checks?.add(endpoint, check);
  }

  /** Calls are balanced among these endpoints by their loads, so this thread has to see those of the others. */
  shareLoads(endpoints: readonly Endpoint[]): void {
    if (endpoints.length < 2) return;
    for (const endpoint of endpoints) {
      // One that was removed, in a balancer of requests that began before, would keep its row forever.
      if (this.#known.get(endpoint.key)?.endpoint === endpoint) this.#share(endpoint);
    }
  }

  /** If the table is full, the endpoint is balanced and limited by the calls of each thread alone. */
  #share(endpoint: Endpoint): void {
    if (this.#loads === undefined || endpoint.sharesLoad) return;
    const load = this.#loads.claim(endpoint.key);
    if (load === undefined) endpoint.countsAlone = true;
    else endpoint.shareLoad(load);
  }

  /** Retries to the backend with this key are limited, so this thread has to see those of the others. */
  shareRetries({ retrying }: BackendCalls, key: string): void {
    // No endpoint has such a key: the part before the first space would be escaped.
    if (this.#loads !== undefined) retrying.share(this.#loads, `%retries ${key}`);
  }

  /** Gives up what a configuration that is not in effect holds, besides the counts of backends that the one in effect has too. */
  drop({
    endpoints,
    calls,
  }: {
    readonly endpoints: readonly Held[];
    readonly calls: ReadonlyMap<string, BackendCalls>;
  }) {
    this.release(endpoints);
    for (const [key, { retrying }] of calls) if (!this.calls.has(key)) retrying.release();
  }

  /** Adds a user to what has at least one. */
  retain(held: Held): void {
    const counted = held instanceof Endpoint ? this.#known.get(held.key) : this.#names.get(held.key);
    if (counted !== undefined) counted.users++;
  }

  /** Removes one user of each. An endpoint without users is removed, and its pool drained. */
  release(held: readonly Held[]): void {
    for (const endpoint of held) {
      if (!(endpoint instanceof Endpoint)) {
        this.#releaseName(endpoint);
        continue;
      }
      const counted = this.#known.get(endpoint.key);
      if (counted === undefined || --counted.users > 0) continue;
      this.#known.delete(endpoint.key);
      if (endpoint.check !== undefined) this.#checks?.delete(endpoint);
      endpoint.remove();
      this.#pools.release(endpoint.pool);
    }
  }

  #releaseName(names: NamedEndpoints): void {
    const counted = this.#names.get(names.key);
    if (counted === undefined || --counted.users > 0) return;
    this.#names.delete(names.key);
    names.close();
  }

  /** Another thread has evicted an endpoint. */
  evict(notice: EvictionNotice): void {
    const now = performance.now();
    const known = this.#known.get(notice.key);
    if (known !== undefined) known.endpoint.evict(notice, now);
    else this.#early.add(notice, now);
  }

  /** A result of active health checks, of this thread or another one. */
  setHealth(notice: HealthNotice): void {
    if (notice.healthy === undefined) {
      this.#healths.delete(notice.key);
      return;
    }
    this.#healths.set(notice.key, notice);
    this.#known.get(notice.key)?.endpoint.setHealth(notice);
  }

  /** Another thread has found the addresses of a name. */
  learn(notice: NamesNotice): void {
    if (notice.addresses.length === 0) this.#learned.delete(notice.key);
    else this.#learned.set(notice.key, notice);
    this.#names.get(notice.key)?.names.learn(notice.addresses);
  }

  /** Forgets the calls of this thread, and takes over what others know: for rehearsals, whose calls say nothing about endpoints. */
  restart(evictions: readonly EvictionNotice[], healths: readonly HealthNotice[], names: readonly NamesNotice[]): void {
    const found = new Map(names.map((notice) => [notice.key, notice.addresses]));
    for (const [key, counted] of this.#names) counted.names.learn(found.get(key) ?? []);
    for (const { endpoint } of this.#known.values()) endpoint.restart();
    for (const notice of healths) this.setHealth(notice);
    for (const notice of evictions) this.#known.get(notice.key)?.endpoint.evict(notice, performance.now());
  }

  /** Those of these endpoints that this thread knows. */
  withKeys(keys: readonly string[]): Endpoint[] {
    return keys.flatMap((key) => this.#known.get(key)?.endpoint ?? []);
  }

  /** The state of all endpoints of this thread, or of those with these keys. */
  stats(keys?: readonly string[]): EndpointStats[] {
    const now = performance.now();
    const wanted = keys === undefined ? Array.from(this.#known.values(), (each) => each.endpoint) : this.withKeys(keys);
    return wanted.map((endpoint) => ({
      // First, because it also ends an eviction whose time is over.
      evictedMs: endpoint.isEvicted(now) && endpoint.check?.healthy !== false ? endpoint.evictedUntil - now : null,
      key: endpoint.key,
      target: endpoint.pool.name,
      health: endpoint.health,
      latency: endpoint.latency,
      pending: endpoint.pending,
      total: endpoint.total,
      consecutiveFailures: endpoint.consecutiveFailures,
      timesEjected: endpoint.timesEjected,
      overflows: endpoint.overflows,
      check: endpoint.check === undefined ? null : { ...endpoint.check },
      pool: endpoint.pool.use,
      ...nameOf(endpoint),
      ...(endpoint.resolved && { resolved: endpoint.resolved }),
      limits: limitsOf(endpoint),
      countsAlone: endpoint.countsAlone,
    }));
  }
}

/** Combines the state of an endpoint in several threads. Their limits add up, unless they share them. */
export function combineThreads(a: EndpointStats, b: EndpointStats): EndpointStats {
  const both = combineStats(a, b);
  const { waiting, requests, shared } = a.limits;
  const limits = { ...both.limits, ...(shared.waiting && { waiting }), ...(shared.requests && { requests }) };
  return { ...both, limits };
}

/**
 * Combines the state of several endpoints, such as those of one name: counts are summed, health and latency averaged,
 * weighted by calls. It is evicted if any of them is, because readers of the dump look for the reason of failures.
 */
export function combineStats(a: EndpointStats, b: EndpointStats): EndpointStats {
  const total = a.total + b.total;
  const mean = (x: number, y: number): number => (total === 0 ? x : (x * a.total + y * b.total) / total);
  return {
    ...a,
    health: mean(a.health, b.health),
    latency: mean(a.latency, b.latency),
    pending: a.pending + b.pending,
    total,
    consecutiveFailures: Math.max(a.consecutiveFailures, b.consecutiveFailures),
    timesEjected: Math.max(a.timesEjected, b.timesEjected),
    evictedMs: a.evictedMs === null ? b.evictedMs : Math.max(a.evictedMs, b.evictedMs ?? 0),
    overflows: a.overflows + b.overflows,
    check: combineChecks(a.check, b.check),
    pool: addUse(a.pool, b.pool),
    ...newerName(a, b),
    limits: addLimits(a.limits, b.limits),
    countsAlone: a.countsAlone || b.countsAlone,
  };
}

function nameOf({ pool: { knownName: name } }: Endpoint): Pick<EndpointStats, "name"> {
  return name === undefined ? {} : { name };
}

/** The one that was looked up last: every thread looks up on its own. */
function newerName(a: EndpointStats, b: EndpointStats): Pick<EndpointStats, "name"> {
  const age = ({ name }: EndpointStats): number => name?.ageMs ?? Number.POSITIVE_INFINITY;
  const { name = a.name ?? b.name } = age(b) < age(a) ? b : a;
  return name === undefined ? {} : { name };
}

function limitsOf({ pool, maxRequests, sharesLoad }: Endpoint): EndpointLimits {
  const shared = { waiting: pool.sharesPending, requests: sharesLoad };
  return { ...pool.limits, requests: Number.isFinite(maxRequests) ? maxRequests : null, shared };
}

function addLimits(a: EndpointLimits, b: EndpointLimits): EndpointLimits {
  const requests = a.requests === null || b.requests === null ? null : a.requests + b.requests;
  const shared = {
    waiting: a.shared.waiting && b.shared.waiting,
    requests: a.shared.requests && b.shared.requests,
  };
  return { connections: a.connections + b.connections, waiting: a.waiting + b.waiting, requests, shared };
}

/** Unhealthy if one of them is. Only one worker at a time probes, so probes are summed. */
function combineChecks(a: CheckStats | null, b: CheckStats | null): CheckStats | null {
  if (a === null || b === null) return a ?? b;
  const { healthy, reason } = b.healthy === false || a.healthy === undefined ? b : a;
  return { healthy, reason, passed: a.passed + b.passed, failed: a.failed + b.failed };
}

function addUse(a: PoolUse, b: PoolUse): PoolUse {
  return {
    active: a.active + b.active,
    idle: a.idle + b.idle,
    connecting: a.connecting + b.connecting,
    waiting: a.waiting + b.waiting,
    overflows: a.overflows + b.overflows,
  };
}

/**
 * The identity by which an endpoint survives a reload. `owner`: the uid of its workload; `` for static backends. `check`: the
 * identity of its active health check.
 */
export function endpointKey(target: PoolTarget, capacity: number, owner = "", check = ""): string {
  const key = `${ownerPart(owner)} ${poolKey(target)} ${capacity}`;
  return check === "" ? key : `${key} ${check}`;
}

/** The same for the endpoints of a name. */
export function namedKey(target: FollowedTarget, weight: number, owner = "", check = ""): string {
  return `${endpointKey(target, weight, owner, check)} ${JSON.stringify(target.dns ?? {})}`;
}

/** The endpoints of each workload, by its uid. */
export function byOwner(stats: Iterable<EndpointStats>): (owner: string) => readonly EndpointStats[] {
  const grouped = Map.groupBy(stats, ({ key }) => key.slice(0, key.indexOf(" ")));
  return (owner) => grouped.get(ownerPart(owner)) ?? [];
}

/** Whether the endpoint with this key is one of the workload with this uid. */
export function isOwner(key: string, uid: string): boolean {
  return key.startsWith(`${ownerPart(uid)} `);
}

/** Escapes spaces, because a space ends the part in the key. */
function ownerPart(owner: string): string {
  return owner.replaceAll("%", "%25").replaceAll(" ", "%20");
}
