import type { Endpoint } from "../endpoints/endpoint.ts";
import type { Algorithm } from "./balancer.ts";

/**
 * Smooth weighted round robin, as nginx does it: each turn adds every endpoint's capacity to its credit, the highest credit is
 * picked and pays the sum. Capacities 5, 1, 1 give a a b a c a a rather than a a a a a b c. Each worker thread has separate turns;
 * `random`, uniform in [0, 1), keeps them from starting with the same endpoint after a reload.
 */
export function roundRobin(random: () => number): Algorithm {
  const credits = new WeakMap<Endpoint, number>();
  return ({ endpoints }) => {
    let [picked] = endpoints as readonly [Endpoint, ...Endpoint[]];
    let highest = Number.NEGATIVE_INFINITY;
    let sum = 0;
    for (const endpoint of endpoints) {
      const credit = (credits.get(endpoint) ?? random() * endpoint.capacity) + endpoint.capacity;
      credits.set(endpoint, credit);
      sum += endpoint.capacity;
      if (credit <= highest) continue;
      highest = credit;
      picked = endpoint;
    }
    credits.set(picked, highest - sum);
    return picked;
  };
}
