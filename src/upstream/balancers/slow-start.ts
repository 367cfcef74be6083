import type { Algorithm } from "./balancer.ts";

/**
 * Holds back endpoints that are new or have recovered: their share grows from nothing to the full one in `window` ms, and what it lacks goes
 * to the endpoints that are past that time. While there are none of those, none is held back. `random` is uniform in [0, 1), `now`
 * the clock of `Endpoint.startedAt`.
 */
export function slowStart(pick: Algorithm, window: number, random: () => number, now = clock): Algorithm {
  return (bucket, key) => {
    const picked = pick(bucket, key);
    const time = now();
    const age = time - picked.startedAt;
    if (age >= window || random() * window < age) return picked;
    const warm = bucket.endpoints.filter(
      ({ startedAt, evictedUntil }) => time - startedAt >= window && evictedUntil === 0,
    );
    return warm.length === 0 ? picked : pick(bucket.of(warm), key);
  };
}

function clock(): number {
  return performance.now();
}
