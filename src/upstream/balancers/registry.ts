import type { LoadBalancer } from "../discovery/discovery.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { type Algorithm, type Balancer, BucketBalancer, type BucketOrder, type Tiers } from "./balancer.ts";
import { leastRequests } from "./least-requests.ts";
import { powerOfTwoChoices } from "./power-of-two-choices.ts";
import { rendezvous } from "./rendezvous.ts";
import { roundRobin } from "./round-robin.ts";
import { slowStart } from "./slow-start.ts";

type AlgorithmName = NonNullable<LoadBalancer["algorithm"]>;

/**
 * The algorithms of `services[].loadBalancer.algorithm`. Each call makes the algorithm of one balancer, which may keep state.
 * `random` is uniform in [0, 1).
 */
export const ALGORITHMS: Readonly<Record<AlgorithmName, (random: () => number) => Algorithm>> = {
  PowerOfTwoChoices: powerOfTwoChoices,
  LeastRequests: leastRequests,
  RoundRobin: roundRobin,
};

/** Whether an algorithm looks at the calls in progress at endpoints. */
export function balancesByLoad({ algorithm = "PowerOfTwoChoices" }: Pick<LoadBalancer, "algorithm"> = {}): boolean {
  return algorithm !== "RoundRobin";
}

/** The balancer of a service or pool. `affinity`: requests with a key keep their endpoint, the others use the algorithm. */
export function serviceBalancer(
  tiers: Tiers<Endpoint>,
  { algorithm = "PowerOfTwoChoices", slowStart: window }: Pick<LoadBalancer, "algorithm" | "slowStart"> = {},
  affinity: boolean,
  random: () => number,
  order?: BucketOrder,
): Balancer {
  const algorithmic = ALGORITHMS[algorithm](random);
  const plain = window === undefined ? algorithmic : slowStart(algorithmic, window, random);
  return new BucketBalancer(tiers, affinity ? rendezvous(plain) : plain, { random, order });
}
