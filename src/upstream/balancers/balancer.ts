/** The balancers of backends, and the buckets of endpoints that algorithms pick from. */
import type { Endpoint } from "../endpoints/endpoint.ts";
import type { Held } from "../endpoints/endpoints.ts";
import { unitOf } from "./key-hash.ts";

/**
 * The order in which endpoints get calls. A tier gets them only while no tier before it takes any: backups are a tier of their own. The
 * buckets of a tier are as far as the gateway is from their endpoints, the nearest first, and calls spill over from one to the next.
 */
export type Tiers<Each> = readonly (readonly (readonly Each[])[])[];

/** An endpoint that gets requests only while nearer ones take none, or never. */
export interface PassedOver {
  /** `host:port`. */
  readonly name: string;
  readonly why: string;
}

/** What the order of buckets means. Asked for explanations only. */
export interface BucketOrder {
  /** Why an endpoint is not in the first bucket. */
  whyBehind(endpoint: Endpoint): string;
  /** What is in no bucket. */
  excluded(): readonly PassedOver[];
}

/** Chooses the endpoint of one attempt among those of a backend. */
export interface Balancer {
  /** All endpoints that it may choose, the nearest bucket first. */
  readonly endpoints: readonly Endpoint[];
  /** What a configuration holds for it. Absent: the endpoints. */
  readonly held?: readonly Held[] | undefined;
  /**
   * undefined = there is no endpoint with capacity. `key`: what session affinity has derived from the request
   * (docs/policies/session-affinity.md); balancers without affinity ignore it. Endpoints in `failed` are chosen only if there are
   * no others. For a trace, the evicted endpoints are added to `evicted`, with the chosen one if there was no better one.
   */
  choose(key?: Uint8Array, failed?: ReadonlySet<Endpoint>, evicted?: Endpoint[]): Endpoint | undefined;
  /** Whether any endpoint besides `endpoint` and those in `failed` takes calls now. */
  hasOther(endpoint: Endpoint, failed?: ReadonlySet<Endpoint>): boolean;
  /** For explanations: the endpoints that come first and take no calls, and what that means for the others. undefined: nothing. */
  whyBeyond?(chosen: Endpoint): string | undefined;
  /** For explanations: the endpoints that come after `chosen` (all if it is undefined), and those that never get requests. Absent: the balancer has no order. */
  passedOver?(chosen: Endpoint | undefined): readonly PassedOver[];
  /** The endpoint of this name (`host:port`) if it takes calls now: for requests that belong to one endpoint. */
  find(name: string): Endpoint | undefined;
}

/**
 * The one endpoint of a static backend. It is chosen even while it is evicted, because there is no alternative. `find` does not
 * return it then: a split can choose another backend for the requests that belong to it.
 */
export class SingleEndpoint implements Balancer {
  readonly endpoints: readonly Endpoint[];
  readonly #endpoint: Endpoint;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    this.endpoints = [endpoint];
  }

  choose(_key?: Uint8Array, _failed?: ReadonlySet<Endpoint>, evicted?: Endpoint[]): Endpoint {
    noteEvicted(evicted, this.endpoints, clock);
    return this.#endpoint;
  }

  hasOther(): boolean {
    return false;
  }

  find(name: string): Endpoint | undefined {
    const endpoint = this.#endpoint;
    return endpoint.pool.name === name && isActive(endpoint, clock) ? endpoint : undefined;
  }
}

function noteEvicted(notes: Endpoint[] | undefined, among: readonly Endpoint[], now: () => number): void {
  if (notes !== undefined) for (const endpoint of among) if (isEvicted(endpoint, now)) notes.push(endpoint);
}

function clock(): number {
  return performance.now();
}

function isActive(endpoint: Endpoint, now: () => number): boolean {
  return !endpoint.isFull && !isEvicted(endpoint, now);
}

/** Reads the clock only for endpoints that were evicted. */
function isEvicted(endpoint: Endpoint, now: () => number): boolean {
  return endpoint.evictedUntil !== 0 && endpoint.isEvicted(now());
}

/** Picks an endpoint of one bucket. An evicted pick makes the caller pick again, among the active endpoints of the bucket. */
export type Algorithm = (bucket: Bucket, key: Uint8Array | undefined) => Endpoint;

/**
 * A bucket whose endpoints are not evicted takes all calls until less than 1 / 1.4 of its capacity is left, as with Envoy's
 * `overprovisioning_factor`: servers have some room, and a single failure need not send calls to another zone.
 */
const OVERPROVISIONING = 1.4;

/** How a balancer chooses. */
interface Choosing {
  /** Uniform in [0, 1). Default: that of the process. */
  readonly random?: () => number;
  /** The clock of evictions. */
  readonly now?: () => number;
  readonly order?: BucketOrder | undefined;
}

/**
 * Applies one algorithm to one bucket of the first tier with an active endpoint: one that is not evicted and has fewer calls than
 * `maxRequests`. Usually that is the nearest bucket. If a part of it is evicted, the calls that the rest cannot take go to the next buckets,
 * so that one server of ten does not get the calls of ten. If every endpoint is evicted, the first bucket is used regardless (reference
 * 3.26, Envoy's panic mode): a call that will probably fail is better than one that is not made. If some are full instead, one of
 * those is returned, which rejects the call: the load must not move to endpoints that fail.
 */
export class BucketBalancer implements Balancer {
  readonly endpoints: readonly Endpoint[];
  readonly #tiers: readonly (readonly Bucket[])[];
  readonly #pick: Algorithm;
  readonly #random: () => number;
  readonly #now: () => number;
  readonly #order: BucketOrder | undefined;

  /** Endpoints with capacity 0 are drained and never chosen. */
  constructor(tiers: Tiers<Endpoint>, pick: Algorithm, { random = Math.random, now = clock, order }: Choosing = {}) {
    this.#tiers = bucketsOf(tiers, ({ capacity }) => capacity > 0);
    this.endpoints = this.#tiers.flat().flatMap(({ endpoints }) => endpoints);
    this.#pick = pick;
    this.#random = random;
    this.#now = now;
    this.#order = order;
  }

  passedOver(chosen: Endpoint | undefined): readonly PassedOver[] {
    const order = this.#order;
    if (order === undefined) return [];
    const buckets = this.#tiers.flat();
    const behind = buckets.slice(this.#rankOf(chosen) + 1).flatMap(({ endpoints }) => endpoints);
    return [
      ...behind.map((endpoint) => ({ name: endpoint.pool.name, why: order.whyBehind(endpoint) })),
      ...order.excluded(),
    ];
  }

  whyBeyond(chosen: Endpoint): string | undefined {
    const none = "no endpoint that comes first takes requests";
    const has = ({ endpoints }: Bucket): boolean => endpoints.includes(chosen);
    const at = this.#tiers.findIndex((tier) => tier.some(has));
    const tier = this.#tiers[at] ?? [];
    const rank = tier.findIndex(has);
    if (rank === 0 && at > 0) return none;
    // Calls go beyond the first bucket also if this one does not.
    const first = tier.slice(0, Math.max(1, rank));
    const endpoints = first.flatMap((bucket) => bucket.endpoints);
    const idle = endpoints.filter((endpoint) => !isActive(endpoint, this.#now)).length;
    const taken = this.#sharesOf(first) / Math.min(1, this.#sharesOf(tier));
    if (idle === 0 || (rank === 0 && !(taken < 1))) return undefined;
    if (idle === endpoints.length) return none;
    const share = taken < 1 ? `, so ${Math.round(100 * (1 - taken))} % of the requests go beyond them` : "";
    return `${idle} of the ${endpoints.length} endpoints that come first ${idle === 1 ? "takes" : "take"} no requests${share}`;
  }

  /** Which bucket the endpoint is in; -1 for none. */
  #rankOf(endpoint: Endpoint | undefined): number {
    return this.#tiers.flat().findIndex(({ endpoints }) => endpoint !== undefined && endpoints.includes(endpoint));
  }

  choose(key?: Uint8Array, failed?: ReadonlySet<Endpoint>, evicted?: Endpoint[]): Endpoint | undefined {
    noteEvicted(evicted, this.endpoints, this.#now);
    const other = failed === undefined ? undefined : this.#chooseAmong(this.#without(failed), key);
    return other ?? this.#chooseAmong(this.#tiers, key);
  }

  #without(failed: ReadonlySet<Endpoint>): readonly (readonly Bucket[])[] {
    const tiers = this.#tiers.map((tier) => tier.map(({ endpoints }) => endpoints));
    return bucketsOf(tiers, (endpoint) => !failed.has(endpoint));
  }

  #chooseAmong(tiers: readonly (readonly Bucket[])[], key: Uint8Array | undefined): Endpoint | undefined {
    let fallback: Endpoint | undefined;
    let full: Endpoint | undefined;
    for (const tier of tiers) {
      const spilled = tier.length > 1 ? this.#spillOver(tier, key) : undefined;
      if (spilled !== undefined) return spilled;
      for (const bucket of tier) {
        const picked = this.#pick(bucket, key);
        fallback ??= picked;
        // The usual case reads the endpoints that the algorithm has looked at, not the whole bucket.
        if (isActive(picked, this.#now)) return picked;
        const active = this.#pickActive(bucket, key);
        if (active !== undefined) return active;
        full ??= bucket.endpoints.find((endpoint) => !isEvicted(endpoint, this.#now));
      }
    }
    return full ?? fallback;
  }

  #pickActive(bucket: Bucket, key: Uint8Array | undefined): Endpoint | undefined {
    const active = bucket.endpoints.filter((endpoint) => isActive(endpoint, this.#now));
    return active.length === 0 ? undefined : this.#pick(new Bucket(active), key);
  }

  /** An endpoint that is not in the first bucket, for the part of the calls that the buckets before it cannot take. */
  #spillOver(tier: readonly Bucket[], key: Uint8Array | undefined): Endpoint | undefined {
    // The usual case. To look at ten near endpoints takes 20 ns, measured in a loop; shares would take 100.
    if (isWhole(tier[0] as Bucket)) return undefined;
    const [first, ...others] = tier as readonly [Bucket, ...Bucket[]];
    const nearest = this.#shareOf(first);
    const shares = others.map((bucket) => this.#shareOf(bucket));
    const all = this.#sharesOf(tier);
    // If all buckets together cannot take the calls, each gets its part of them. A key stays in its bucket as long as the shares are the same.
    let at = (key === undefined ? this.#random() : unitOf(key)) * Math.min(1, all) - nearest;
    if (at < 0) return undefined;
    const farther = others.find((_, i) => {
      at -= shares[i] as number;
      return at < 0;
    });
    return farther && this.#pickActive(farther, key);
  }

  #sharesOf(buckets: readonly Bucket[]): number {
    return buckets.reduce((sum, bucket) => sum + this.#shareOf(bucket), 0);
  }

  /** The share of all calls that a bucket can take: 1 unless too much of its capacity is evicted. */
  #shareOf({ endpoints }: Bucket): number {
    let all = 0;
    let left = 0;
    for (const endpoint of endpoints) {
      all += endpoint.capacity;
      if (!isEvicted(endpoint, this.#now)) left += endpoint.capacity;
    }
    return Math.min(1, (OVERPROVISIONING * left) / all);
  }

  hasOther(than: Endpoint, failed?: ReadonlySet<Endpoint>): boolean {
    return this.endpoints.some(
      (endpoint) => endpoint !== than && failed?.has(endpoint) !== true && isActive(endpoint, this.#now),
    );
  }

  find(name: string): Endpoint | undefined {
    return this.endpoints.find((endpoint) => endpoint.pool.name === name && isActive(endpoint, this.#now));
  }
}

/** No endpoint is evicted, or may have been a moment ago. */
function isWhole({ endpoints }: Bucket): boolean {
  for (let i = 0; i < endpoints.length; i++) if (endpoints[i]?.evictedUntil !== 0) return false;
  return true;
}

/** Only tiers and buckets that have such an endpoint. */
function bucketsOf(tiers: Tiers<Endpoint>, is: (endpoint: Endpoint) => boolean): readonly (readonly Bucket[])[] {
  const left = tiers.map((tier) => tier.map((endpoints) => endpoints.filter(is)).filter(({ length }) => length > 0));
  return left.filter(({ length }) => length > 0).map((tier) => tier.map((endpoints) => new Bucket(endpoints)));
}

/** Endpoints that are equally near; never empty. */
class Bucket {
  readonly endpoints: readonly Endpoint[];
  /** Running sum of capacities, so that a draw is weighted. */
  readonly #bounds: readonly number[];
  readonly #sum: number;

  constructor(endpoints: readonly Endpoint[]) {
    let sum = 0;
    this.endpoints = endpoints;
    this.#bounds = endpoints.map(({ capacity }) => {
      sum += capacity;
      return sum;
    });
    this.#sum = sum;
  }

  /** A bucket of some of the endpoints, at least one. */
  of(endpoints: readonly Endpoint[]): Bucket {
    return new Bucket(endpoints);
  }

  /** A random endpoint, as likely as its share of the capacity. `random` is uniform in [0, 1). */
  draw(random: () => number): Endpoint {
    const at = random() * this.#sum;
    return this.endpoints[this.#bounds.findIndex((bound) => at < bound)] as Endpoint;
  }

  /**
   * Two draws with replacement; `prefers` decides between them. An evicted draw wins, so that the caller draws again among the
   * active endpoints: choosing the other one would be a single draw, without a comparison.
   */
  drawTwo(random: () => number, prefers: (second: Endpoint, first: Endpoint) => boolean): Endpoint {
    const first = this.draw(random);
    const second = this.draw(random);
    if ((first.evictedUntil === 0) !== (second.evictedUntil === 0)) return first.evictedUntil === 0 ? second : first;
    return prefers(second, first) ? second : first;
  }
}
