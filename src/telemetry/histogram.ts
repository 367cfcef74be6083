/** Upper bounds in seconds (reference 3.31). */
export const REQUEST_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80] as const;
export const PROCESSING_BOUNDS = [
  0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
] as const;
export const HANDSHAKE_BOUNDS = [
  0.000_5, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2, 4, 8,
] as const;

/** A histogram as plain data; the last entry of `counts` is for values above all `bounds`. */
export interface HistogramSnapshot {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly sum: number;
}

/** The bucket of an observation. Most fall into the first ones, so a scan is faster than a binary search. */
export function bucketOf(bounds: readonly number[], seconds: number): number {
  let index = 0;
  while (index < bounds.length && seconds > (bounds[index] ?? 0)) index++;
  return index;
}

/**
 * Counts observations per bucket; a bucket holds values up to its bound and above the previous one (not cumulative). One
 * thread writes; threads that have the memory may read.
 */
export class Histogram {
  readonly bounds: readonly number[];
  /** The sum, then the buckets. */
  readonly memory: SharedArrayBuffer;
  readonly #cells: Float64Array;

  constructor(
    bounds: readonly number[],
    memory = new SharedArrayBuffer((bounds.length + 2) * Float64Array.BYTES_PER_ELEMENT),
  ) {
    this.bounds = bounds;
    this.memory = memory;
    this.#cells = new Float64Array(memory);
  }

  observe(seconds: number): void {
    const cells = this.#cells;
    const index = bucketOf(this.bounds, seconds);
    cells[index + 1] = (cells[index + 1] ?? 0) + 1;
    cells[0] = (cells[0] ?? 0) + seconds;
  }

  snapshot(): HistogramSnapshot {
    const [sum = 0, ...counts] = this.#cells;
    return { bounds: this.bounds, counts, sum };
  }
}
