import { HANDSHAKE_BOUNDS, Histogram, type HistogramSnapshot, REQUEST_BOUNDS } from "./histogram.ts";
import { type MetricName, REQUEST_LABELS } from "./metric-table.ts";
import { readCounts, SeriesTraffic } from "./request-counters.ts";

/** One series: label values in the order of the metric's table entry. */
export interface Sample {
  readonly labels: readonly string[];
  readonly value: number | HistogramSnapshot;
}

/** All counters as plain data. A metric without samples is absent. */
export type MetricsSnapshot = { readonly [name in MetricName]?: readonly Sample[] };

/**
 * Announces the shared memory of new counters, once per series, from the thread that counts. Readers then read it at any time
 * without that thread, which may be busy or dead.
 */
export type SeriesNotice =
  /** The table of all request series; a later one takes the place of an earlier one. */
  | { readonly kind: "table"; readonly memory: SharedArrayBuffer }
  /** `labels`: those of requests, then the custom ones. */
  | { readonly kind: "request"; readonly labels: readonly string[]; readonly row: number }
  /** One number. */
  | {
      readonly kind: "count";
      readonly metric: CountedMetric;
      readonly labels: readonly string[];
      readonly memory: SharedArrayBuffer;
    }
  | {
      readonly kind: "histogram";
      readonly metric: TimedMetric;
      readonly labels: readonly string[];
      readonly memory: SharedArrayBuffer;
    };

/** Histograms in separate memory, by their bounds. */
export const TIMES = {
  tls_handshake_duration_seconds: HANDSHAKE_BOUNDS,
  upstream_connect_duration_seconds: REQUEST_BOUNDS,
  upstream_call_duration_seconds: REQUEST_BOUNDS,
} as const satisfies { readonly [Name in MetricName]?: readonly number[] };

export type TimedMetric = keyof typeof TIMES;

/** Metrics of the table of requests. */
type TableMetric =
  | "requests_total"
  | "request_duration_seconds"
  | "response_bytes_total"
  | "retries_total"
  | "request_processing_seconds"
  | "response_processing_seconds";

/** Metrics whose samples are one number each, in separate memory. */
export type CountedMetric = Exclude<MetricName, TableMetric | TimedMetric>;

/** A number of something. One thread writes; threads that have the memory may read. */
export class Count {
  readonly memory: SharedArrayBuffer;
  readonly #cells: Float64Array;

  constructor(memory = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cells = new Float64Array(memory);
  }

  get count(): number {
    return this.#cells[0] ?? 0;
  }

  set count(count: number) {
    this.#cells[0] = count;
  }
}

/** Sees a series of requests: its labels, always the same array, and its numbers, which change after the call. */
export type RequestVisitor = (labels: readonly string[], traffic: SeriesTraffic) => void;

/** Reads the counters of one thread from the memory that its notices announced. */
export class CounterMemory {
  readonly #series: Exclude<SeriesNotice, { readonly kind: "table" }>[] = [];
  #table: Float64Array = new Float64Array(0);
  readonly #traffic = new SeriesTraffic();

  add(notice: SeriesNotice): void {
    if (notice.kind === "table") this.#table = new Float64Array(notice.memory);
    else this.#series.push(notice);
  }

  /** Shows each series of requests. Unlike `snapshot`, it allocates nothing. */
  eachRequestSeries(visit: RequestVisitor): void {
    for (const series of this.#series) {
      if (series.kind !== "request") continue;
      this.#traffic.read(this.#table, series.row);
      visit(series.labels, this.#traffic);
    }
  }

  /** All counters as plain data, including series that are still 0. */
  snapshot(): MetricsSnapshot {
    const samples = new Map<MetricName, Sample[]>();
    const add = (name: MetricName, labels: readonly string[], value: Sample["value"]): void => {
      const list = samples.get(name);
      if (list === undefined) samples.set(name, [{ labels, value }]);
      else list.push({ labels, value });
    };
    const durations = new HistogramSums();
    const requestTimes = new HistogramSums();
    const responseTimes = new HistogramSums();
    for (const series of this.#series) {
      const { labels } = series;
      if (series.kind === "count") add(series.metric, labels, new Count(series.memory).count);
      else if (series.kind === "histogram")
        add(series.metric, labels, new Histogram(TIMES[series.metric], series.memory).snapshot());
      else {
        const counts = readCounts(this.#table, series.row);
        add("requests_total", labels, counts.requests);
        add("response_bytes_total", labels, counts.bytes);
        add("retries_total", labels, counts.retries);
        const route = labels[ROUTE] ?? "";
        durations.add([route, methodClass(labels[METHOD] ?? ""), statusClass(labels[STATUS] ?? "")], counts.duration);
        requestTimes.add([route], counts.requestProcessing);
        responseTimes.add([route], counts.responseProcessing);
      }
    }
    for (const [labels, value] of durations.all()) add("request_duration_seconds", labels, value);
    for (const [labels, value] of requestTimes.all()) add("request_processing_seconds", labels, value);
    for (const [labels, value] of responseTimes.all()) add("response_processing_seconds", labels, value);
    return Object.fromEntries(samples);
  }
}

const ROUTE = REQUEST_LABELS.indexOf("route");
const METHOD = REQUEST_LABELS.indexOf("method");
const STATUS = REQUEST_LABELS.indexOf("status");

/** Histograms of series that have the same labels once some are left out, added up. */
class HistogramSums {
  readonly #sums = new Map<string, readonly [labels: readonly string[], value: HistogramSnapshot]>();

  add(labels: readonly string[], value: HistogramSnapshot): void {
    const key = seriesKey(labels);
    const known = this.#sums.get(key);
    this.#sums.set(key, [labels, known === undefined ? value : addHistograms(known[1], value)]);
  }

  all(): Iterable<readonly [labels: readonly string[], value: HistogramSnapshot]> {
    return this.#sums.values();
  }
}

/** What a method does by its definition (RFC 9110 9.2.1, 9.2.2). */
export function methodClass(method: string): string {
  if (["GET", "HEAD", "OPTIONS", "TRACE"].includes(method)) return "safe";
  return method === "PUT" || method === "DELETE" ? "idempotent" : "other";
}

/** Texts that exist once, because scrapes look series up by them. */
const STATUS_CLASSES: Readonly<Record<string, string>> = { 1: "1xx", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx" };

/** `2xx`; empty when no status was sent. */
export function statusClass(status: string): string {
  const first = status.charAt(0);
  return status === "0" ? "" : (STATUS_CLASSES[first] ?? `${first}xx`);
}

/** Adds up the snapshots of several threads, series by series. */
export function mergeSnapshots(list: readonly MetricsSnapshot[]): MetricsSnapshot {
  const merged = new Map<string, Map<string, Sample>>();
  for (const snapshot of list)
    for (const [name, samples] of Object.entries(snapshot)) {
      const known = merged.get(name) ?? new Map<string, Sample>();
      merged.set(name, known);
      for (const { labels, value } of samples) {
        const key = seriesKey(labels);
        const before = known.get(key);
        known.set(key, { labels, value: before === undefined ? value : sumOf(before.value, value) });
      }
    }
  return Object.fromEntries(Array.from(merged, ([name, samples]) => [name, [...samples.values()]]));
}

function sumOf(a: Sample["value"], b: Sample["value"]): Sample["value"] {
  if (typeof a === "number" || typeof b === "number") return Number(a) + Number(b);
  return addHistograms(a, b);
}

function addHistograms(a: HistogramSnapshot, b: HistogramSnapshot): HistogramSnapshot {
  return { bounds: a.bounds, counts: a.counts.map((count, i) => count + (b.counts[i] ?? 0)), sum: a.sum + b.sum };
}

/** No name in a configuration and no method or status holds the separator. */
export function seriesKey(labels: readonly string[]): string {
  return labels.join("\u0000");
}
