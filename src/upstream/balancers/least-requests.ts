import type { Algorithm } from "./balancer.ts";

/**
 * Picks the one of two random endpoints with fewer calls in progress over all workers for its capacity, as Envoy's LEAST_REQUEST does with
 * its default of two choices. For calls whose latency says nothing about load, such as long polls. `random` is uniform in [0, 1).
 */
export function leastRequests(random: () => number): Algorithm {
  return (bucket) =>
    bucket.drawTwo(random, (second, first) => second.load * first.capacity < first.load * second.capacity);
}
