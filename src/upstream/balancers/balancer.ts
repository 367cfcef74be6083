/** The balancers of backends, and the buckets of endpoints that algorithms pick from. */
import type { Endpoint } from "../endpoints/endpoint.ts";
import type { Held } from "../endpoints/endpoints.ts";

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
  /** For explanations: the endpoints behind `chosen`, or all if there is none, and those that get no requests. Absent: there are none. */
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
 * Applies one algorithm to locality buckets: the first bucket with an active endpoint is used: one that is not evicted and has
 * fewer calls than `maxRequests`. If every endpoint of every bucket is evicted, the first bucket is used regardless (reference
 * 3.26, Envoy's panic mode): a call that will probably fail is better than one that is not made. If some are full instead, one of
 * those is returned, which rejects the call: the load must not move to endpoints that fail.
 */
export class BucketBalancer implements Balancer {
  readonly endpoints: readonly Endpoint[];
  readonly #buckets: readonly Bucket[];
  readonly #pick: Algorithm;
  readonly #now: () => number;
  readonly #order: BucketOrder | undefined;

  /** `buckets`: the nearest first; endpoints with capacity 0 are drained and never chosen. `now`: the clock of evictions. */
  constructor(buckets: readonly (readonly Endpoint[])[], pick: Algorithm, now = clock, order?: BucketOrder) {
    const usable = buckets.map((bucket) => bucket.filter(({ capacity }) => capacity > 0));
    this.#buckets = usable.filter((bucket) => bucket.length > 0).map((bucket) => new Bucket(bucket));
    this.endpoints = usable.flat();
    this.#pick = pick;
    this.#now = now;
    this.#order = order;
  }

  passedOver(chosen: Endpoint | undefined): readonly PassedOver[] {
    const order = this.#order;
    if (order === undefined) return [];
    const rank = this.#buckets.findIndex(({ endpoints }) => chosen !== undefined && endpoints.includes(chosen));
    const behind = this.#buckets.slice(rank + 1).flatMap(({ endpoints }) => endpoints);
    return [
      ...behind.map((endpoint) => ({ name: endpoint.pool.name, why: order.whyBehind(endpoint) })),
      ...order.excluded(),
    ];
  }

  choose(key?: Uint8Array, failed?: ReadonlySet<Endpoint>, evicted?: Endpoint[]): Endpoint | undefined {
    noteEvicted(evicted, this.endpoints, this.#now);
    const other = failed === undefined ? undefined : this.#chooseAmong(this.#without(failed), key);
    return other ?? this.#chooseAmong(this.#buckets, key);
  }

  #without(failed: ReadonlySet<Endpoint>): Bucket[] {
    const left = this.#buckets.map(({ endpoints }) => endpoints.filter((endpoint) => !failed.has(endpoint)));
    return left.filter((endpoints) => endpoints.length > 0).map((endpoints) => new Bucket(endpoints));
  }

  #chooseAmong(buckets: readonly Bucket[], key: Uint8Array | undefined): Endpoint | undefined {
    let fallback: Endpoint | undefined;
    let full: Endpoint | undefined;
    for (const bucket of buckets) {
      const picked = this.#pick(bucket, key);
      fallback ??= picked;
      // The usual case reads the endpoints that the algorithm has looked at, not the whole bucket.
      if (isActive(picked, this.#now)) return picked;
      const active = bucket.endpoints.filter((endpoint) => isActive(endpoint, this.#now));
      if (active.length > 0) return this.#pick(new Bucket(active), key);
      full ??= bucket.endpoints.find((endpoint) => !isEvicted(endpoint, this.#now));
    }
    return full ?? fallback;
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
