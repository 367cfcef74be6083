import type { Algorithm } from "./balancer.ts";

/**
 * Power of two choices (Mitzenmacher 2001): picks the one of two random endpoints with the better score, which combines health,
 * latency and calls in progress (docs/configuration.md#serviceloadbalancer). Avoids slow and failing endpoints at the cost of two
 * draws, however many endpoints there are. `random` is uniform in [0, 1).
 */
export function powerOfTwoChoices(random: () => number): Algorithm {
  return (bucket) => bucket.drawTwo(random, (second, first) => second.score > first.score);
}
