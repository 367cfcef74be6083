import {
  Count,
  type CountedMetric,
  CounterMemory,
  type MetricsSnapshot,
  type SeriesNotice,
  seriesKey,
  TIMES,
  type TimedMetric,
} from "./counter-memory.ts";
import { UNKNOWN } from "./custom-labels.ts";
import { Histogram } from "./histogram.ts";
import { type CONNECTION_LABELS, type METRICS, REQUEST_LABELS } from "./metric-table.ts";
import { RequestCounters } from "./request-counters.ts";

export {
  type Count,
  CounterMemory,
  type MetricsSnapshot,
  mergeSnapshots,
  type RequestVisitor,
  type Sample,
  type SeriesNotice,
} from "./counter-memory.ts";
export type { Histogram } from "./histogram.ts";

/** Labels of a request. An empty value becomes `unknown`. */
export type RequestLabels = Readonly<Record<(typeof REQUEST_LABELS)[number], string>>;
/** `protocol` is http, https, tcp, tls or udp; a UDP session counts as a connection. */
type ConnectionLabels = Readonly<Record<(typeof CONNECTION_LABELS)[number], string>>;

/** Counters of the client connections that share all labels. */
export interface ConnectionSeries {
  readonly connections: Count;
  /** Bytes from clients. */
  readonly received: Count;
  /** Bytes to clients. */
  readonly sent: Count;
  /** Seconds that TLS handshakes took. */
  readonly handshakes: () => Histogram;
}

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
  readonly inFlight: Count;
  readonly #memory = new CounterMemory();
  readonly #announce: (notice: SeriesNotice) => void;
  readonly #requests = new Map<string, number>();
  readonly #noCustom: readonly string[];
  readonly #otherCustom: readonly string[];
  #customSeries = 0;
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
    this.inFlight = this.count("requests_in_flight");
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
    const { bind, gateway, listener, protocol } = of;
    const labels = [bind, gateway, listener, protocol] as const;
    return {
      connections: this.count("downstream_connections_total", ...labels),
      received: this.count("downstream_received_bytes_total", ...labels),
      sent: this.count("downstream_sent_bytes_total", ...labels),
      // A plaintext port has none, and a histogram takes many lines.
      handshakes: () => this.histogram("tls_handshake_duration_seconds", ...labels),
    };
  }

  /** Gets or creates the series of these labels, in the order of the table. */
  count<Metric extends CountedMetric>(metric: Metric, ...labels: ValuesOf<(typeof METRICS)[Metric]["labels"]>): Count {
    return upsert(this.#counts, seriesKey([metric, ...labels]), () => {
      const count = new Count();
      this.#announce({ kind: "count", metric, labels, memory: count.memory });
      return count;
    });
  }

  /** Gets or creates the histogram of these labels. */
  histogram<Metric extends TimedMetric>(
    metric: Metric,
    ...labels: ValuesOf<(typeof METRICS)[Metric]["labels"]>
  ): Histogram {
    return upsert(this.#histograms, seriesKey([metric, ...labels]), () => {
      const histogram = new Histogram(TIMES[metric]);
      this.#announce({ kind: "histogram", metric, labels, memory: histogram.memory });
      return histogram;
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
