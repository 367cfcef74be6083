import type { Pool } from "./pool.ts";
import type { Eviction } from "./settings.ts";

/** Weight of the newest value in moving averages (reference 3.28). */
const ALPHA = 0.3;

/** An eviction, for other threads that have the same endpoint. */
export interface EvictionNotice {
  readonly key: string;
  /** Milliseconds from now on. */
  readonly ms: number;
  readonly timesEjected: number;
  readonly restoreHealth: number | undefined;
}

/** What active health checks have found out about an endpoint, for the workers that do not probe it. */
export interface HealthNotice {
  readonly key: string;
  /** undefined: the endpoint is not probed any more. */
  readonly healthy: boolean | undefined;
  /** Why it is not healthy; `` if it is. */
  readonly reason: string;
}

/** The active health check of an endpoint, for metrics and the dump. */
export interface CheckStats {
  /** undefined: no probe has ended yet. */
  healthy: boolean | undefined;
  /** Why it is not healthy. */
  reason: string;
  /** Probes of this thread. */
  passed: number;
  failed: number;
}

/** One address that a backend may send to, with what the balancer has learned about it. */
export class Endpoint {
  readonly key: string;
  readonly pool: Pool;
  readonly capacity: number;
  /** Calls that it may have at a time in this thread (`http.maxRequests`). */
  readonly maxRequests: number;
  /** Calls that were turned away because it had so many. */
  overflows = 0;
  /** 1 = every call of late succeeded, 0 = none did. */
  health = 1;
  /** Seconds until the response was complete; moving average over successful calls. */
  latency = 0;
  pending = 0;
  total = 0;
  consecutiveFailures = 0;
  /**
   * `performance.now()` ms until which it gets no calls as long as there are others; 0 = not evicted. Infinity while active
   * health checks fail, so that balancers have one thing to look at.
   */
  evictedUntil = 0;
  /** undefined: it has no active health check. */
  check: CheckStats | undefined;
  /** Evictions since the last success. */
  timesEjected = 0;
  /** Health from the end of the eviction on; undefined = as it was. */
  #restoreHealth: number | undefined;
  readonly #onEvicted: (notice: EvictionNotice) => void;

  /** `onEvicted` is called for evictions by this thread, not for those that other threads report (`evict`). */
  constructor(key: string, pool: Pool, capacity: number, onEvicted: (notice: EvictionNotice) => void = () => {}) {
    this.key = key;
    this.pool = pool;
    this.capacity = capacity;
    this.maxRequests = pool.target.limits?.maxRequests ?? Number.POSITIVE_INFINITY;
    this.#onEvicted = onEvicted;
  }

  /** Higher is better. */
  get score(): number {
    return this.health / (1 + this.latency * (1 + 0.1 * this.pending));
  }

  /** A call is sent; one of `end`, `fail` and `abandon` follows. */
  begin(): void {
    this.pending++;
    this.total++;
  }

  /** `seconds` counts only for successful calls. */
  end(success: boolean, seconds: number): void {
    this.pending--;
    this.health = ALPHA * (success ? 1 : 0) + (1 - ALPHA) * this.health;
    if (success) {
      this.latency = this.latency === 0 ? seconds : ALPHA * seconds + (1 - ALPHA) * this.latency;
      this.consecutiveFailures = 0;
      this.timesEjected = 0;
    } else this.consecutiveFailures++;
  }

  /**
   * A call has failed where failures evict (reference 3.26): for `duration` ms, times the evictions since the last success.
   * The calls that were under way when it was evicted do not prolong that. `now` as of `performance.now()`. Returns whether it
   * is evicted for this failure.
   */
  fail(eviction: Eviction, duration: number, now: number): boolean {
    const evicted = this.isEvicted(now);
    const before = this.health;
    this.end(false, 0);
    if (evicted) return false;
    const { consecutiveFailures, healthThreshold } = eviction;
    const due =
      (consecutiveFailures === undefined && healthThreshold === undefined) ||
      (healthThreshold !== undefined && before < healthThreshold) ||
      (consecutiveFailures !== undefined && this.consecutiveFailures >= consecutiveFailures);
    if (!due) return false;
    this.timesEjected++;
    this.evictedUntil = now + duration * this.timesEjected;
    this.#restoreHealth = eviction.restoreHealth;
    const { key, timesEjected } = this;
    this.#onEvicted({ key, ms: duration * timesEjected, timesEjected, restoreHealth: eviction.restoreHealth });
    return true;
  }

  /** Another thread has evicted the endpoint for what it has seen. */
  evict({ ms, timesEjected, restoreHealth }: EvictionNotice, now: number): void {
    if (this.isEvicted(now) && this.evictedUntil >= now + ms) return;
    this.evictedUntil = now + ms;
    this.timesEjected = Math.max(this.timesEjected, timesEjected);
    this.#restoreHealth = restoreHealth;
  }

  /** What active health checks say, here or in another thread. Their word takes the place of an eviction that they find. */
  setHealth({ healthy, reason }: Pick<HealthNotice, "healthy" | "reason">): void {
    const { check } = this;
    if (check === undefined) return;
    check.reason = reason;
    if (healthy === check.healthy) return;
    check.healthy = healthy;
    if (healthy === false) this.evictedUntil = Number.POSITIVE_INFINITY;
    else if (this.evictedUntil === Number.POSITIVE_INFINITY) this.evictedUntil = 0;
  }

  /** Also brings the endpoint back when its time is over. */
  isEvicted(now: number): boolean {
    if (this.evictedUntil === 0) return false;
    if (now < this.evictedUntil) return true;
    this.evictedUntil = 0;
    this.health = this.#restoreHealth ?? this.health;
    return false;
  }

  /** A call that ended without saying anything about the endpoint: the client left. */
  abandon(): void {
    this.pending--;
  }
}

/** What has been evicted, for workers that start later and for endpoints that come later. */
export class Evictions {
  /** By endpoint: the notice, and `performance.now()` ms when its time is over. */
  readonly #known = new Map<string, { readonly notice: EvictionNotice; readonly until: number }>();

  add(notice: EvictionNotice, now: number): void {
    for (const [key, { until }] of this.#known) if (until <= now) this.#known.delete(key);
    this.#known.set(notice.key, { notice, until: now + notice.ms });
  }

  /** Gives out the notice about one endpoint with what is left of its time; undefined when there is none, or it is over. */
  take(key: string, now: number): EvictionNotice | undefined {
    const known = this.#known.get(key);
    this.#known.delete(key);
    return known === undefined || known.until <= now ? undefined : { ...known.notice, ms: known.until - now };
  }

  /** Those whose time is not over, with what is left of it. */
  inForce(now: number): EvictionNotice[] {
    return [...this.#known.values()]
      .filter(({ until }) => until > now)
      .map(({ notice, until }) => ({ ...notice, ms: until - now }));
  }
}
