import type { EvictionNotice } from "../upstream/endpoint.ts";

/** What workers have evicted, for workers that start later. */
export class Evictions {
  /** By endpoint: the notice, and `performance.now()` ms when its time is over. */
  readonly #known = new Map<string, { readonly notice: EvictionNotice; readonly until: number }>();

  add(notice: EvictionNotice, now: number): void {
    for (const [key, { until }] of this.#known) if (until <= now) this.#known.delete(key);
    this.#known.set(notice.key, { notice, until: now + notice.ms });
  }

  /** Those whose time is not over, with what is left of it. */
  inForce(now: number): EvictionNotice[] {
    return [...this.#known.values()]
      .filter(({ until }) => until > now)
      .map(({ notice, until }) => ({ ...notice, ms: until - now }));
  }
}
