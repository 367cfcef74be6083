import type { EvictionNotice } from "./endpoint.ts";

/** What has been evicted, for workers that start later and for endpoints that come later. */
export class Evictions {
  /** By endpoint: the notice, and `performance.now()` ms when its time is over. */
  readonly #known = new Map<string, { readonly notice: EvictionNotice; readonly until: number }>();

  add(notice: EvictionNotice, now: number): void {
    for (const [key, { until }] of this.#known) if (until <= now) this.#known.delete(key);
    this.#known.set(notice.key, { notice, until: now + notice.ms });
  }

  /** Gives out the notice about one endpoint with what is left of its time; undefined when there is none, or it is over. */
  take(key: string, now: number): EvictionNotice | undefined {
    const known = this.#known.get(key);
    this.#known.delete(key);
    return known === undefined || known.until <= now ? undefined : { ...known.notice, ms: known.until - now };
  }

  /** Those whose time is not over, with what is left of it. */
  inForce(now: number): EvictionNotice[] {
    return [...this.#known.values()]
      .filter(({ until }) => until > now)
      .map(({ notice, until }) => ({ ...notice, ms: until - now }));
  }
}
