import type { Endpoint } from "../endpoints/endpoint.ts";
import type { Held } from "../endpoints/endpoints.ts";
import type { Balancer, PassedOver } from "./balancer.ts";

/**
 * The balancer of a service, whose endpoints come and go while routes stay as they are: a change of the endpoints reaches all
 * routes and callouts of the service at once, and none of them is compiled again.
 */
export class MovableBalancer implements Balancer {
  #current: Balancer;

  constructor(current: Balancer) {
    this.#current = current;
  }

  get endpoints(): readonly Endpoint[] {
    return this.#current.endpoints;
  }

  get held(): readonly Held[] | undefined {
    return this.#current.held;
  }

  choose(key?: Uint8Array, failed?: ReadonlySet<Endpoint>, evicted?: Endpoint[]): Endpoint | undefined {
    return this.#current.choose(key, failed, evicted);
  }

  hasOther(endpoint: Endpoint, failed?: ReadonlySet<Endpoint>): boolean {
    return this.#current.hasOther(endpoint, failed);
  }

  whyBeyond(chosen: Endpoint): string | undefined {
    return this.#current.whyBeyond?.(chosen);
  }

  passedOver(chosen: Endpoint | undefined): readonly PassedOver[] {
    return this.#current.passedOver?.(chosen) ?? [];
  }

  find(name: string): Endpoint | undefined {
    return this.#current.find(name);
  }

  /** Calls from now on go to the endpoints of `next`. */
  move(next: Balancer): void {
    this.#current = next;
  }
}
