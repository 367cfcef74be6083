import type { Endpoint } from "./endpoint.ts";

/** Chooses the endpoint of one attempt. */
export interface Balancer {
  readonly endpoints: readonly Endpoint[];
  /** undefined = no healthy endpoint. */
  choose(): Endpoint | undefined;
  /** Those between which it would choose now. */
  candidates(): readonly Endpoint[];
}

/** The only endpoint of a static backend. Evicted or not: there is no other. */
export class SingleEndpoint implements Balancer {
  readonly endpoints: readonly Endpoint[];
  readonly #endpoint: Endpoint;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    this.endpoints = [endpoint];
  }

  choose(): Endpoint {
    return this.#endpoint;
  }

  candidates(): readonly Endpoint[] {
    return this.endpoints;
  }
}

/**
 * Power of two choices: of two random endpoints the one with the better score (reference 3.28), from the first bucket that
 * has endpoints which are not evicted. When all of all buckets are evicted, from the first bucket all the same.
 */
export class PowerOfTwoChoices implements Balancer {
  readonly endpoints: readonly Endpoint[];
  readonly #buckets: readonly Bucket[];
  readonly #random: () => number;
  readonly #now: () => number;

  /** `buckets`: the best first. `random` is uniform in [0, 1), `now` the clock of evictions. */
  constructor(
    buckets: readonly (readonly Endpoint[])[],
    random: () => number,
    now: () => number = () => performance.now(),
  ) {
    const usable = buckets.map((bucket) => bucket.filter((endpoint) => endpoint.capacity > 0));
    this.#buckets = usable.filter((bucket) => bucket.length > 0).map((bucket) => new Bucket(bucket));
    this.endpoints = usable.flat();
    this.#random = random;
    this.#now = now;
  }

  choose(): Endpoint | undefined {
    for (const bucket of this.#buckets) {
      const first = bucket.draw(this.#random);
      const second = bucket.draw(this.#random);
      if (this.#isActive(first) && this.#isActive(second)) return better(first, second);
      const active = this.#activeOf(bucket);
      // Another draw among the active ones is as likely to give each of them as draws until both are active.
      if (active.length > 0) return this.#chooseFrom(new Bucket(active));
    }
    const [fallback] = this.#buckets;
    return fallback === undefined ? undefined : this.#chooseFrom(fallback);
  }

  candidates(): readonly Endpoint[] {
    for (const bucket of this.#buckets) {
      const active = this.#activeOf(bucket);
      if (active.length > 0) return active;
    }
    return this.#buckets[0]?.endpoints ?? [];
  }

  #chooseFrom(bucket: Bucket): Endpoint {
    return better(bucket.draw(this.#random), bucket.draw(this.#random));
  }

  #activeOf({ endpoints }: Bucket): readonly Endpoint[] {
    return endpoints.filter((endpoint) => this.#isActive(endpoint));
  }

  #isActive(endpoint: Endpoint): boolean {
    return endpoint.evictedUntil === 0 || !endpoint.isEvicted(this.#now());
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
    this.#bounds = endpoints.map((endpoint) => {
      sum += endpoint.capacity;
      return sum;
    });
    this.#sum = sum;
  }

  draw(random: () => number): Endpoint {
    const at = random() * this.#sum;
    return this.endpoints[this.#bounds.findIndex((bound) => at < bound)] as Endpoint;
  }
}

function better(first: Endpoint, second: Endpoint): Endpoint {
  return second.score > first.score ? second : first;
}
