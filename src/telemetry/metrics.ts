import {
  ConnectionSeries,
  Count,
  type CountedMetric,
  CounterMemory,
  type MetricsSnapshot,
  type SeriesNotice,
  seriesKey,
} from "./counter-memory.ts";
import { UNKNOWN } from "./custom-labels.ts";
import { Histogram, histogramBytes, REQUEST_BOUNDS } from "./histogram.ts";
import { CONNECTION_LABELS, type METRICS, REQUEST_LABELS } from "./metric-table.ts";
import { RequestCounters } from "./request-counters.ts";

export {
  type ConnectionSeries,
  type Count,
  CounterMemory,
  type MetricsSnapshot,
  mergeSnapshots,
  type Sample,
  type SeriesNotice,
} from "./counter-memory.ts";
export type { Histogram } from "./histogram.ts";

/** Labels of a request. An empty value becomes `unknown`. */
export type RequestLabels = Readonly<Record<(typeof REQUEST_LABELS)[number], string>>;
/** `protocol` is http, https, tcp, tls or udp; a UDP session counts as a connection. */
type ConnectionLabels = Readonly<Record<(typeof CONNECTION_LABELS)[number], string>>;

/** A text for each label. */
type ValuesOf<Labels extends readonly string[]> = { readonly [Index in keyof Labels]: string };

/**
 * Series with custom labels per thread, at most. Clients choose their values, for example with a header; beyond the limit,
 * requests count under `other`, so that clients cannot fill the memory (about 20 MiB at the limit).
 */
export const MAX_CUSTOM_SERIES = 10_000;
export const OTHER = "other";

/**
 * All counters of one worker. Looking up a series builds a string, so callers keep the series and increment it, which allocates
 * nothing. The counters are in shared memory, which `announce` passes on to readers.
 */
export class Metrics {
  /** Counts requests by the handles that `requestSeries` returns. */
  readonly requests: RequestCounters;
  /** Requests in progress. */
  readonly inFlight = new Count();
  readonly #memory = new CounterMemory();
  readonly #announce: (notice: SeriesNotice) => void;
  readonly #requests = new Map<string, number>();
  readonly #noCustom: readonly string[];
  readonly #otherCustom: readonly string[];
  #customSeries = 0;
  readonly #connections = new Map<string, ConnectionSeries>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #counts = new Map<string, Count>();

  /** `customLabels`: number of custom labels. `announce` is invoked once per series. */
  constructor(customLabels = 0, announce: (notice: SeriesNotice) => void = () => {}) {
    this.#noCustom = Array.from({ length: customLabels }, () => UNKNOWN);
    this.#otherCustom = this.#noCustom.map(() => OTHER);
    this.#announce = (notice) => {
      this.#memory.add(notice);
      announce(notice);
    };
    this.#announce({ kind: "inFlight", memory: this.inFlight.memory });
    this.requests = new RequestCounters((memory) => this.#announce({ kind: "table", memory }));
  }

  /** Gets or creates the series of these labels; returns its handle for `requests`. */
  requestSeries(labels: RequestLabels): number {
    return this.#requestSeries(labels, this.#noCustom);
  }

  /** The same with custom labels; undefined if `MAX_CUSTOM_SERIES` is reached: use `otherSeries` then. */
  customSeries(labels: RequestLabels, custom: readonly string[]): number | undefined {
    const known = this.#requests.get(seriesKey([...values(REQUEST_LABELS, labels), ...custom]));
    if (known !== undefined) return known;
    if (this.#customSeries >= MAX_CUSTOM_SERIES) return undefined;
    this.#customSeries++;
    return this.#requestSeries(labels, custom);
  }

  /** The series for all values beyond the limit. */
  otherSeries(labels: RequestLabels): number {
    return this.#requestSeries(labels, this.#otherCustom);
  }

  #requestSeries(of: RequestLabels, custom: readonly string[]): number {
    const labels = [...values(REQUEST_LABELS, of), ...custom];
    return upsert(this.#requests, seriesKey(labels), () => {
      const row = this.requests.add();
      this.#announce({ kind: "request", labels, row });
      return row;
    });
  }

  /** Gets or creates the series of these labels. */
  connection(of: ConnectionLabels): ConnectionSeries {
    const labels = values(CONNECTION_LABELS, of);
    return upsert(this.#connections, seriesKey(labels), () => {
      const series = new ConnectionSeries();
      this.#announce({ kind: "connection", labels, memory: series.memory });
      return series;
    });
  }

  /** Gets or creates the series of these labels, in the order of the table. */
  count<Metric extends CountedMetric>(metric: Metric, ...labels: ValuesOf<(typeof METRICS)[Metric]["labels"]>): Count {
    return upsert(this.#counts, seriesKey([metric, ...labels]), () => {
      const count = new Count();
      this.#announce({ kind: "count", metric, labels, memory: count.memory });
      return count;
    });
  }

  /** Durations of connects over one transport: `plaintext` or `tls`. */
  upstreamConnect(transport: string): Histogram {
    return this.#histogram("connect", [transport]);
  }

  /** Durations of calls, such as kind `Primary`, `Policy` or `Mirror` and subtype `Http` or `ExtAuthz`. */
  upstreamCall(kind: string, subtype: string): Histogram {
    return this.#histogram("call", [kind, subtype]);
  }

  #histogram(kind: "connect" | "call", labels: readonly string[]): Histogram {
    return upsert(this.#histograms, seriesKey([kind, ...labels]), () => {
      const memory = new SharedArrayBuffer(histogramBytes(REQUEST_BOUNDS));
      this.#announce({ kind, labels, memory });
      return new Histogram(REQUEST_BOUNDS, memory);
    });
  }

  /** All counters as plain data, including series that are still 0. */
  snapshot(): MetricsSnapshot {
    return this.#memory.snapshot();
  }
}

function values<L extends string>(names: readonly L[], labels: Readonly<Record<L, string>>): string[] {
  return names.map((name) => labels[name]);
}

function upsert<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}
