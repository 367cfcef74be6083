import { type RequestVisitor, seriesKey } from "./counter-memory.ts";
import { REQUEST_BOUNDS } from "./histogram.ts";
import { SeriesTraffic } from "./request-counters.ts";

const BUCKETS = REQUEST_BOUNDS.length + 1;
/** Milliseconds, from where to where each bucket reaches; the last one has no end, so its start stands for all of it. */
const EDGES: readonly number[] = [0, ...REQUEST_BOUNDS.map((seconds) => seconds * 1000)];

/** How many requests there were, how many of them failed, and how long they took. */
export class Traffic {
  errors = 0;
  /** When the latest one ended, in milliseconds since the epoch; 0 without requests. */
  latest = 0;
  /** Requests by bucket of `REQUEST_BOUNDS`. */
  readonly #durations = new Float64Array(BUCKETS);

  /** Adds the requests of one series. `failed`: all of them failed, not only calls of gRPC. */
  add({ durations, failedCalls, latest }: SeriesTraffic, failed: boolean): void {
    for (let i = 0; i < BUCKETS; i++) {
      const count = durations[i] ?? 0;
      this.#durations[i] = (this.#durations[i] ?? 0) + count;
      if (failed) this.errors += count;
    }
    if (!failed) this.errors += failedCalls;
    this.latest = Math.max(this.latest, latest);
  }

  get requests(): number {
    return this.#durations.reduce((sum, count) => sum + count, 0);
  }

  /** The part of it that is not in `earlier`. */
  since(earlier: Traffic): Traffic {
    const later = new Traffic();
    later.errors = this.errors - earlier.errors;
    later.latest = this.latest;
    for (let i = 0; i < BUCKETS; i++) later.#durations[i] = (this.#durations[i] ?? 0) - (earlier.#durations[i] ?? 0);
    return later;
  }

  /**
   * Milliseconds that `share` of the requests took at most; undefined without requests. As exact as the buckets: within one, durations are
   * taken to be spread evenly, as `histogram_quantile` of Prometheus does.
   */
  quantile(share: number): number | undefined {
    const requests = this.requests;
    if (requests === 0) return undefined;
    let left = share * requests;
    for (let i = 0; i < BUCKETS; i++) {
      const count = this.#durations[i] ?? 0;
      const from = EDGES[i] ?? 0;
      if (count > 0 && left <= count) return from + (left / count) * ((EDGES[i + 1] ?? from) - from);
      left -= count;
    }
    return EDGES.at(-1);
  }
}

/** Requests by their labels, as `CounterMemory` shows them, added up over threads that have ended. */
export class EndedSeries {
  readonly #series = new Map<string, { readonly labels: readonly string[]; readonly traffic: SeriesTraffic }>();

  add(labels: readonly string[], traffic: SeriesTraffic): void {
    const key = seriesKey(labels);
    let known = this.#series.get(key);
    if (known === undefined) {
      known = { labels, traffic: new SeriesTraffic() };
      this.#series.set(key, known);
    }
    known.traffic.add(traffic);
  }

  each(visit: RequestVisitor): void {
    for (const { labels, traffic } of this.#series.values()) visit(labels, traffic);
  }
}
