import type { EvictionCause } from "../../telemetry/health-history.ts";
import type { SharedLoad } from "../loads/shared-loads.ts";
import type { Pool } from "../pools/pool.ts";
import type { NamedAddress } from "../resolve/named-addresses.ts";
import type { Eviction } from "../settings/settings.ts";

/** Weight of the newest value in moving averages (reference 3.28). */
const ALPHA = 0.3;

/** An eviction, for other threads that have the same endpoint. */
export interface EvictionNotice {
  readonly key: string;
  /** Milliseconds from now. */
  readonly ms: number;
  readonly timesEjected: number;
  readonly restoreHealth: number | undefined;
  /** Absent: it is assumed. */
  readonly cause?: EvictionCause;
}

/** The result of active health checks of an endpoint, for the workers that do not probe it. */
export interface HealthNotice {
  readonly key: string;
  /** undefined: the endpoint is no longer probed. */
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

/** What a name has to do with an endpoint. */
export interface Resolved {
  /** Key of the endpoints of the name. */
  readonly of: string;
  readonly host: string;
  /** `host:port`. */
  readonly target: string;
  readonly address: NamedAddress;
  /** Its part of the weight of the name. */
  readonly weight: number;
  /** Further addresses of the name, which are not used because there are too many. */
  readonly omitted: number;
}

/** A call that waits for a connection to an endpoint; it has sent nothing. */
export interface WaitingCall {
  /** No configuration has the endpoint any more. */
  onEndpointRemoved(): void;
}

/** One address of an upstream, with its health, its load and its connection pool. */
export class Endpoint {
  readonly key: string;
  readonly pool: Pool;
  /** Its weight. Of an address of a name, it changes with the number of addresses. */
  capacity: number;
  /** Set if it is an address of a name. */
  resolved: Resolved | undefined;
  /** Limit of calls in progress, over all threads (`http.maxRequests`). */
  readonly maxRequests: number;
  /** Calls rejected because of `maxRequests`. */
  overflows = 0;
  /** The calls of other threads should count too, but there was no room in the table that threads share. */
  countsAlone = false;
  /** Moving average over recent calls: 1 = all succeeded, 0 = none did. */
  health = 1;
  /** Seconds until the response was complete: moving average over successful calls. */
  latency = 0;
  /** Calls of this thread that are in progress; `load` has those of all. */
  pending = 0;
  total = 0;
  consecutiveFailures = 0;
  /**
   * `performance.now()` ms until which the endpoint gets no calls as long as there are others; 0 = not evicted. Infinity while active
   * health checks fail, and in rehearsals that assume this, so that balancers check a single value.
   */
  evictedUntil = 0;
  /** When it began to get calls, in ms of `performance.now()`: it was added, or an eviction or failing health checks ended. */
  startedAt = performance.now();
  /** undefined: the endpoint has no active health check. */
  check: CheckStats | undefined;
  /** Evictions since the last success. */
  timesEjected = 0;
  /** Health after the eviction; undefined = unchanged. */
  #restoreHealth: number | undefined;
  /** Created for the first call that waits: most calls find a connection at once. */
  #waiting: Set<WaitingCall> | undefined;
  /** undefined: no choice and no limit depends on the calls of other threads, or there are none. */
  #shared: SharedLoad | undefined;
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
    return this.health / (1 + this.latency * (1 + 0.1 * this.load));
  }

  /** Calls in progress: of all threads once they share them, else of this one. */
  get load(): number {
    return this.#shared?.calls ?? this.pending;
  }

  /** As many calls are in progress as `maxRequests` allows. */
  get isFull(): boolean {
    return this.maxRequests !== Number.POSITIVE_INFINITY && this.load >= this.maxRequests;
  }

  get sharesLoad(): boolean {
    return this.#shared !== undefined;
  }

  /** From now on, until `remove`, other threads see the calls of this one, and this one theirs. */
  shareLoad(shared: SharedLoad): void {
    this.#shared = shared;
    shared.add(this.pending);
  }

  /**
   * A call is sent; one of `end`, `fail` and `abandon` follows. False: there are more than `maxRequests` allows. If threads ask for the last
   * place at the same time, at most one gets it.
   */
  begin(): boolean {
    this.total++;
    this.pending++;
    this.#shared?.add(1);
    if (this.maxRequests === Number.POSITIVE_INFINITY) return true;
    return (this.#shared?.exactCalls ?? this.pending) <= this.maxRequests;
  }

  /** As if `begin` had not been called. */
  takeBack(): void {
    this.total--;
    this.#leave();
  }

  /** A call waits for a connection; `stopWaiting` follows. */
  wait(call: WaitingCall): void {
    this.#waiting ??= new Set();
    this.#waiting.add(call);
  }

  stopWaiting(call: WaitingCall): void {
    this.#waiting?.delete(call);
  }

  /** No configuration has the endpoint any more: calls that wait for it move to another one, if there is one. */
  remove(): void {
    for (const call of [...(this.#waiting ?? [])]) call.onEndpointRemoved();
    this.#shared?.release();
    this.#shared = undefined;
  }

  /** `seconds` counts only for successful calls. */
  end(success: boolean, seconds: number): void {
    this.#leave();
    this.health = ALPHA * (success ? 1 : 0) + (1 - ALPHA) * this.health;
    if (success) {
      this.latency = this.latency === 0 ? seconds : ALPHA * seconds + (1 - ALPHA) * this.latency;
      this.consecutiveFailures = 0;
      this.timesEjected = 0;
    } else this.consecutiveFailures++;
  }

  /**
   * A call has failed, and failures can evict the endpoint (docs/configuration.md#healtheviction): for `duration` ms, multiplied
   * by the number of evictions since the last success. Calls that were in progress when it was evicted do not prolong the
   * eviction. `now`: `performance.now()`. Returns whether this failure evicts the endpoint.
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
    const { key, timesEjected, health, consecutiveFailures: failures } = this;
    const cause = { consecutiveFailures: failures, health };
    this.#onEvicted({ key, ms: duration * timesEjected, timesEjected, restoreHealth: eviction.restoreHealth, cause });
    return true;
  }

  /** Another thread has evicted the endpoint. */
  evict({ ms, timesEjected, restoreHealth }: EvictionNotice, now: number): void {
    if (this.isEvicted(now) && this.evictedUntil >= now + ms) return;
    this.evictedUntil = now + ms;
    this.timesEjected = Math.max(this.timesEjected, timesEjected);
    this.#restoreHealth = restoreHealth;
  }

  /** A result of active health checks, of this thread or another one. A failing check replaces an eviction. */
  setHealth({ healthy, reason }: Pick<HealthNotice, "healthy" | "reason">): void {
    const { check } = this;
    if (check === undefined) return;
    check.reason = reason;
    if (healthy === check.healthy) return;
    check.healthy = healthy;
    if (healthy === false) this.evictedUntil = Number.POSITIVE_INFINITY;
    else if (this.evictedUntil === Number.POSITIVE_INFINITY) {
      this.evictedUntil = 0;
      this.startedAt = performance.now();
    }
  }

  /** As a new endpoint. */
  restart(): void {
    this.health = 1;
    this.latency = 0;
    this.consecutiveFailures = 0;
    this.timesEjected = 0;
    this.evictedUntil = 0;
    this.startedAt = performance.now();
    this.#restoreHealth = undefined;
    if (this.check !== undefined) this.check.healthy = undefined;
  }

  /** Why a balancer passes over the endpoint. */
  whyLeftOut(now: number): string {
    if (this.check?.healthy === false) return `unhealthy: ${this.check.reason}`;
    if (this.evictedUntil === Number.POSITIVE_INFINITY) return "unhealthy: that is assumed";
    return `evicted for ${Math.round(this.evictedUntil - now)}ms`;
  }

  /** Also ends an eviction whose time is over. */
  isEvicted(now: number): boolean {
    if (this.evictedUntil === 0) return false;
    if (now < this.evictedUntil) return true;
    this.evictedUntil = 0;
    this.startedAt = now;
    this.health = this.#restoreHealth ?? this.health;
    return false;
  }

  /** A call has ended without saying anything about the endpoint, for example because the client left. */
  abandon(): void {
    this.#leave();
  }

  #leave(): void {
    this.pending--;
    this.#shared?.add(-1);
  }
}

/** Current evictions, for workers that start later and for endpoints that are added later. */
export class Evictions {
  /** By endpoint: the notice, and `performance.now()` ms when its time is over. */
  readonly #known = new Map<string, { readonly notice: EvictionNotice; readonly until: number }>();

  add(notice: EvictionNotice, now: number): void {
    for (const [key, { until }] of this.#known) if (until <= now) this.#known.delete(key);
    this.#known.set(notice.key, { notice, until: now + notice.ms });
  }

  /** Removes and returns the notice about an endpoint, with the remaining time; undefined if it has no notice or the notice expired. */
  take(key: string, now: number): EvictionNotice | undefined {
    const known = this.#known.get(key);
    this.#known.delete(key);
    return known === undefined || known.until <= now ? undefined : { ...known.notice, ms: known.until - now };
  }

  /** The evictions that are not over, with the remaining time. */
  current(now: number): EvictionNotice[] {
    return [...this.#known.values()]
      .filter(({ until }) => until > now)
      .map(({ notice, until }) => ({ ...notice, ms: until - now }));
  }
}
