import type { Endpoint } from "./endpoint.ts";

/** Chooses the endpoint of one attempt. */
export interface Balancer {
  readonly endpoints: readonly Endpoint[];
  /** undefined = no healthy endpoint. */
  choose(): Endpoint | undefined;
}

/** The only endpoint of a static backend. */
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
}

/** Power of two choices: of two random endpoints the one with the better score (reference 3.28). */
export class PowerOfTwoChoices implements Balancer {
  readonly endpoints: readonly Endpoint[];
  readonly #random: () => number;
  /** Running sum of capacities, so that a draw is weighted. */
  readonly #bounds: readonly number[];

  constructor(endpoints: readonly Endpoint[], random: () => number = Math.random) {
    this.endpoints = endpoints.filter((endpoint) => endpoint.capacity > 0);
    this.#random = random;
    let sum = 0;
    this.#bounds = this.endpoints.map((endpoint) => {
      sum += endpoint.capacity;
      return sum;
    });
  }

  choose(): Endpoint | undefined {
    const first = this.#draw();
    const second = this.#draw();
    if (first === undefined || second === undefined) return first;
    return second.score > first.score ? second : first;
  }

  #draw(): Endpoint | undefined {
    const at = this.#random() * (this.#bounds.at(-1) ?? 0);
    return this.endpoints[this.#bounds.findIndex((bound) => at < bound)];
  }
}
