import type { Algorithm } from "./balancer.ts";

/**
 * Holds back endpoints that are new or have recovered: their share grows from nothing to the full one within `window` ms, and older endpoints
 * take the rest. If all are new, none is held back. `random` returns numbers from [0, 1), evenly distributed; `now` is the clock of
 * `Endpoint.startedAt`.
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
