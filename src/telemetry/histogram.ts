/** Upper bounds in seconds (reference 3.31). */
export const REQUEST_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80] as const;
export const PROCESSING_BOUNDS = [
  0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
] as const;
export const HANDSHAKE_BOUNDS = [
  0.000_5, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2, 4, 8,
] as const;

/** A histogram as plain data; `counts` has one more entry than `bounds`, for what lies above them all. */
export interface HistogramSnapshot {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly sum: number;
}

/** Counts observations per bucket; a bucket holds what is at most its bound and above the one before (not cumulative). */
export class Histogram {
  readonly bounds: readonly number[];
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(seconds: number): void {
    const { bounds, counts } = this;
    let index = 0;
    // Most observations lie in the first buckets, so a scan beats a binary search.
    while (index < bounds.length && seconds > (bounds[index] ?? 0)) index++;
    counts[index] = (counts[index] ?? 0) + 1;
    this.sum += seconds;
  }

  get count(): number {
    let total = 0;
    for (const count of this.counts) total += count;
    return total;
  }

  snapshot(): HistogramSnapshot {
    return { bounds: this.bounds, counts: Array.from(this.counts), sum: this.sum };
  }
}
