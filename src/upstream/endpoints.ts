import { type CheckStats, Endpoint, type EvictionNotice, Evictions, type HealthNotice } from "./endpoint.ts";
import type { CheckedEndpoints, HealthCheck } from "./health/check.ts";
import type { PoolUse } from "./pool.ts";
import { type PoolTarget, poolKey } from "./pool-target.ts";
import type { Pools } from "./pools.ts";

/** What the balancers know of one endpoint, for the dump. */
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
  /** Calls that were turned away because of `maxRequests`. */
  readonly overflows: number;
  /** Of its active health check; null = it has none. */
  readonly check: CheckStats | null;
  readonly pool: PoolUse;
}

/**
 * Calls to one backend, whatever endpoint they went to: backends with the same endpoint share that. A reload that keeps the
 * backend goes on counting.
 */
export interface BackendCalls {
  total: number;
  /** Requests in progress that have been retried. */
  retrying: number;
}

interface Counted {
  readonly endpoint: Endpoint;
  users: number;
}

/** The endpoints of a thread, counted like pools, so that health and latency survive a reload. */
export class Endpoints {
  readonly #pools: Pools;
  readonly #known = new Map<string, Counted>();
  /** Evictions of endpoints that do not exist here yet: a worker that starts gets them before its configuration. */
  readonly #early = new Evictions();
  /** What active health checks have found out, for endpoints that come later too. */
  readonly #healths = new Map<string, HealthNotice>();
  readonly #checks: CheckedEndpoints | undefined;
  /** By the key of the backend, of the configuration in effect. */
  calls: ReadonlyMap<string, BackendCalls> = new Map();
  readonly #onEvicted: ((notice: EvictionNotice) => void) | undefined;

  /** `onEvicted` is called for evictions by this thread, to pass them on to the others. `checks`: of endpoints that have one. */
  constructor(pools: Pools, onEvicted?: (notice: EvictionNotice) => void, checks?: CheckedEndpoints) {
    this.#pools = pools;
    this.#onEvicted = onEvicted;
    this.#checks = checks;
  }

  /** An endpoint, until it is released as often. `owner` distinguishes two workloads at one address. */
  acquire(target: PoolTarget, capacity: number, owner = "", check?: HealthCheck): Endpoint {
    const key = endpointKey(target, capacity, owner, check?.identity);
    let counted = this.#known.get(key);
    if (counted === undefined) {
      const endpoint = new Endpoint(key, this.#pools.acquire(target), capacity, this.#onEvicted);
      const now = performance.now();
      const notice = this.#early.take(key, now);
      if (notice !== undefined) endpoint.evict(notice, now);
      if (check !== undefined) this.#begin(endpoint, check);
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

  /** One more user of an endpoint that somebody has acquired and not released. */
  retain(endpoint: Endpoint): void {
    const counted = this.#known.get(endpoint.key);
    if (counted !== undefined) counted.users++;
  }

  /** Gives back one use of each; an endpoint without users goes, and its pool is drained. */
  release(endpoints: readonly Endpoint[]): void {
    for (const endpoint of endpoints) {
      const counted = this.#known.get(endpoint.key);
      if (counted === undefined || --counted.users > 0) continue;
      this.#known.delete(endpoint.key);
      if (endpoint.check !== undefined) this.#checks?.delete(endpoint);
      this.#pools.release(endpoint.pool);
    }
  }

  /** Another thread has evicted an endpoint. */
  evict(notice: EvictionNotice): void {
    const now = performance.now();
    const known = this.#known.get(notice.key);
    if (known !== undefined) known.endpoint.evict(notice, now);
    else this.#early.add(notice, now);
  }

  /** Active health checks have found out something, in this thread or another. */
  setHealth(notice: HealthNotice): void {
    if (notice.healthy === undefined) {
      this.#healths.delete(notice.key);
      return;
    }
    this.#healths.set(notice.key, notice);
    this.#known.get(notice.key)?.endpoint.setHealth(notice);
  }

  /** What the balancers of this thread know now. */
  stats(): EndpointStats[] {
    const now = performance.now();
    return [...this.#known.values()].map(({ endpoint }) => ({
      // First, because it also brings an endpoint back whose time is over.
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
    }));
  }
}

/**
 * What several threads, or several addresses, say together: counts are summed, health and latency averaged by the calls.
 * Evicted is what one of them has evicted: that is what matters to who looks for the reason.
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
  };
}

/** Of several addresses, the unhealthy one shows. Only one worker at a time probes, so probes are summed. */
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

/** The endpoints of each workload, by its uid. */
export function byOwner(stats: Iterable<EndpointStats>): (owner: string) => readonly EndpointStats[] {
  const grouped = Map.groupBy(stats, ({ key }) => key.slice(0, key.indexOf(" ")));
  return (owner) => grouped.get(ownerPart(owner)) ?? [];
}

/** Without a space, which ends it. */
function ownerPart(owner: string): string {
  return owner.replaceAll("%", "%25").replaceAll(" ", "%20");
}
