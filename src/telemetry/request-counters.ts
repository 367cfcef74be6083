import { bucketOf, type HistogramSnapshot, PROCESSING_BOUNDS, REQUEST_BOUNDS } from "./histogram.ts";

// One row of numbers per series: a counter, a time, three sums, then the interleaved buckets of three histograms. Most requests fall
// into the first buckets, so their writes stay in the first one or two of the six cache lines of a row. Two of the histograms have
// fewer buckets: what few requests write is where they leave room.
const BYTES = 0;
const LATEST = 1;
const DURATION_SUM = 2;
const REQUEST_SUM = 3;
const RESPONSE_SUM = 4;
const DURATION = 5;
const REQUEST = 6;
const RESPONSE = 7;
/** Distance between neighbouring buckets of one histogram. */
const STEP = 3;
const RETRIES = REQUEST + STEP * (PROCESSING_BOUNDS.length + 1);
const FAILED_CALLS = RESPONSE + STEP * (PROCESSING_BOUNDS.length + 1);
const ROW = 48;
const FIRST_ROWS = 64;

/** Milliseconds since the epoch of the 0 of this thread's clock. */
const ORIGIN = performance.timeOrigin;

/** The numbers of one series as plain data. */
interface RequestCounts {
  readonly requests: number;
  /** Bytes of response bodies. */
  readonly bytes: number;
  /** Attempts beyond the first. */
  readonly retries: number;
  readonly duration: HistogramSnapshot;
  readonly requestProcessing: HistogramSnapshot;
  readonly responseProcessing: HistogramSnapshot;
}

/**
 * The counters of all request series of a thread, in one table. With 10,000 routes the series exceed the CPU cache, so the number
 * of cache lines per request matters: two here, over twenty with an object per histogram (measured: 1 µs of CPU per request).
 * The table is in shared memory, so it can be read at any time, even after its thread has ended.
 */
export class RequestCounters {
  #rows: Float64Array;
  #used = 0;
  readonly #onMemory: (memory: SharedArrayBuffer) => void;

  /** `onMemory` receives the table's memory, first at once and again whenever the table has grown into a new one. */
  constructor(onMemory: (memory: SharedArrayBuffer) => void = () => {}) {
    this.#onMemory = onMemory;
    this.#rows = this.#allocate(FIRST_ROWS * ROW, new Float64Array(0));
  }

  /** Adds a series and returns its handle. */
  add(): number {
    const row = this.#used++ * ROW;
    if (row + ROW > this.#rows.length) this.#rows = this.#allocate(this.#rows.length * 2, this.#rows);
    return row;
  }

  #allocate(length: number, numbers: Float64Array): Float64Array {
    const memory = new SharedArrayBuffer(length * Float64Array.BYTES_PER_ELEMENT);
    const rows = new Float64Array(memory);
    rows.set(numbers);
    // Only now: readers would take zeros for counters that have started again.
    this.#onMemory(memory);
    return rows;
  }

  /** Counts a finished request; `seconds` from its first byte to the end of its response, which was at `endedAt`, `performance.now()` ms. */
  count(row: number, seconds: number, bytes: number, retries: number, endedAt = performance.now()): void {
    const rows = this.#rows;
    rows[row + LATEST] = ORIGIN + endedAt;
    if (bytes > 0) increase(rows, row + BYTES, bytes);
    if (retries > 0) increase(rows, row + RETRIES, retries);
    increase(rows, row + DURATION_SUM, seconds);
    increase(rows, row + DURATION + STEP * bucketOf(REQUEST_BOUNDS, seconds), 1);
  }

  /** A request that `count` has counted was a call of gRPC that failed or was rejected, by its own status, though that of HTTP does not say so. */
  countFailedCall(row: number): void {
    increase(this.#rows, row + FAILED_CALLS, 1);
  }

  /** Seconds from the request to the call, and from the upstream's response head to the end of the response. */
  countProcessing(row: number, request: number, response: number): void {
    const rows = this.#rows;
    increase(rows, row + REQUEST_SUM, request);
    increase(rows, row + REQUEST + STEP * bucketOf(PROCESSING_BOUNDS, request), 1);
    increase(rows, row + RESPONSE_SUM, response);
    increase(rows, row + RESPONSE + STEP * bucketOf(PROCESSING_BOUNDS, response), 1);
  }
}

/** The series `row` of a table. */
export function readCounts(table: Float64Array, row: number): RequestCounts {
  const at = (offset: number): number => table[row + offset] ?? 0;
  const histogram = (bounds: readonly number[], first: number, sum: number): HistogramSnapshot => ({
    bounds,
    counts: Array.from({ length: bounds.length + 1 }, (_, index) => at(first + STEP * index)),
    sum: at(sum),
  });
  const duration = histogram(REQUEST_BOUNDS, DURATION, DURATION_SUM);
  return {
    requests: duration.counts.reduce((sum, count) => sum + count, 0),
    bytes: at(BYTES),
    retries: at(RETRIES),
    duration,
    requestProcessing: histogram(PROCESSING_BOUNDS, REQUEST, REQUEST_SUM),
    responseProcessing: histogram(PROCESSING_BOUNDS, RESPONSE, RESPONSE_SUM),
  };
}

/** The requests of one series, without an allocation. */
export class SeriesTraffic {
  /** How many took how long, by bucket of `REQUEST_BOUNDS`. */
  readonly durations = new Float64Array(REQUEST_BOUNDS.length + 1);
  /** Of them, calls of gRPC that failed or were rejected, by their status of gRPC alone. */
  failedCalls = 0;
  /** When the latest one ended, in milliseconds since the epoch; 0 without requests. */
  latest = 0;

  /** Replaces the numbers by those of the series `row`. */
  read(table: Float64Array, row: number): void {
    for (let index = 0; index < this.durations.length; index++)
      this.durations[index] = table[row + DURATION + STEP * index] ?? 0;
    this.failedCalls = table[row + FAILED_CALLS] ?? 0;
    this.latest = table[row + LATEST] ?? 0;
  }

  /** Adds the numbers of another one. */
  add({ durations, failedCalls, latest }: SeriesTraffic): void {
    for (let index = 0; index < this.durations.length; index++)
      this.durations[index] = (this.durations[index] ?? 0) + (durations[index] ?? 0);
    this.failedCalls += failedCalls;
    this.latest = Math.max(this.latest, latest);
  }
}

function increase(rows: Float64Array, index: number, by: number): void {
  rows[index] = (rows[index] ?? 0) + by;
}
