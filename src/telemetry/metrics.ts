import { UNKNOWN } from "./custom-labels.ts";
import { HANDSHAKE_BOUNDS, Histogram, type HistogramSnapshot, REQUEST_BOUNDS } from "./histogram.ts";
import { CONNECTION_LABELS, type MetricName, PLACE_LABELS, REQUEST_LABELS } from "./metric-table.ts";
import { RequestCounters } from "./request-counters.ts";

export { Histogram, type HistogramSnapshot } from "./histogram.ts";

/** Labels of a request. An empty value is shown as `unknown`. */
export type RequestLabels = Readonly<Record<(typeof REQUEST_LABELS)[number], string>>;
/** `protocol` is http, https, tcp or tls. */
export type ConnectionLabels = Readonly<Record<(typeof CONNECTION_LABELS)[number], string>>;

/** Counters of the client connections that share all labels. The owner increments the fields. */
export class ConnectionSeries {
  readonly labels: ConnectionLabels;
  connections = 0;
  /** Bytes from clients. */
  received = 0;
  /** Bytes to clients. */
  sent = 0;
  readonly handshake = new Histogram(HANDSHAKE_BOUNDS);

  constructor(labels: ConnectionLabels) {
    this.labels = labels;
  }
}

/**
 * Series with values of custom labels that a thread keeps. Clients choose such values, for example with a header; beyond
 * the bound, requests count with the values `other`, so that no client can fill the memory (some 20 MiB at most).
 */
export const MAX_CUSTOM_SERIES = 10_000;
export const OTHER = "other";

/** A request series: its labels and its handle in the counters. */
interface RequestSeries {
  readonly labels: RequestLabels;
  /** Values of the custom labels. */
  readonly custom: readonly string[];
  readonly row: number;
}

/** One series: label values in the order of the metric's table entry. */
export interface Sample {
  readonly labels: readonly string[];
  readonly value: number | HistogramSnapshot;
}

/** Plain data that crosses threads. A metric without samples is absent. */
export type MetricsSnapshot = { readonly [name in MetricName]?: readonly Sample[] };

/**
 * All counters of one worker thread. Finding a series costs a string; who counts keeps the series and increments its
 * fields, which allocates nothing.
 */
export class Metrics {
  /** What requests count with, by the handles of `requestSeries`. */
  readonly requests = new RequestCounters();
  readonly #requests = new Map<string, RequestSeries>();
  readonly #noCustom: readonly string[];
  readonly #otherCustom: readonly string[];
  #customSeries = 0;
  readonly #connections = new Map<string, ConnectionSeries>();
  readonly #connects = new Map<string, Histogram>();
  readonly #calls = new Map<string, Histogram>();

  /** `customLabels`: how many labels of their own the request metrics have. */
  constructor(customLabels = 0) {
    this.#noCustom = Array.from({ length: customLabels }, () => UNKNOWN);
    this.#otherCustom = this.#noCustom.map(() => OTHER);
  }

  /** Gets or creates the series of these labels; returns its handle for `requests`. */
  requestSeries(labels: RequestLabels): number {
    return this.#requestSeries(labels, this.#noCustom);
  }

  /** The same with values of the custom labels; undefined when the bound of such series is reached: then `otherSeries`. */
  customSeries(labels: RequestLabels, custom: readonly string[]): number | undefined {
    const known = this.#requests.get(seriesKey([...values(REQUEST_LABELS, labels), ...custom]));
    if (known !== undefined) return known.row;
    if (this.#customSeries >= MAX_CUSTOM_SERIES) return undefined;
    this.#customSeries++;
    return this.#requestSeries(labels, custom);
  }

  /** The series of all values that have none of their own. */
  otherSeries(labels: RequestLabels): number {
    return this.#requestSeries(labels, this.#otherCustom);
  }

  #requestSeries(labels: RequestLabels, custom: readonly string[]): number {
    const key = seriesKey([...values(REQUEST_LABELS, labels), ...custom]);
    return upsert(this.#requests, key, () => ({ labels, custom, row: this.requests.add() })).row;
  }

  /** Gets or creates the series of these labels. */
  connection(labels: ConnectionLabels): ConnectionSeries {
    return upsert(this.#connections, seriesKey(values(CONNECTION_LABELS, labels)), () => new ConnectionSeries(labels));
  }

  /** Durations of connects over one transport: `plaintext` or `tls`. */
  upstreamConnect(transport: string): Histogram {
    return upsert(this.#connects, seriesKey([transport]), () => new Histogram(REQUEST_BOUNDS));
  }

  /** Durations of calls, such as kind `Primary`, `Policy` or `Mirror` and subtype `Http` or `ExtAuthz`. */
  upstreamCall(kind: string, subtype: string): Histogram {
    return upsert(this.#calls, seriesKey([kind, subtype]), () => new Histogram(REQUEST_BOUNDS));
  }

  /** All counters as plain data. Series that have counted nothing yet are included. */
  snapshot(): MetricsSnapshot {
    const samples = new Map<MetricName, Sample[]>();
    const add = (name: MetricName, labels: readonly string[], value: Sample["value"] | Histogram): void => {
      const sample = { labels, value: value instanceof Histogram ? value.snapshot() : value };
      upsert(samples, name, () => []).push(sample);
    };
    const processing = new Map<string, { labels: string[]; request: Sample["value"]; response: Sample["value"] }>();
    for (const series of this.#requests.values()) {
      const labels = [...values(REQUEST_LABELS, series.labels), ...series.custom];
      const counts = this.requests.read(series.row);
      add("requests_total", labels, counts.requests);
      add("request_duration_seconds", labels, counts.duration);
      add("response_bytes_total", labels, counts.bytes);
      add("retries_total", labels, counts.retries);
      // Times of processing are told by place, whatever the method and status.
      const place = values(PLACE_LABELS, series.labels);
      const known = processing.get(seriesKey(place));
      processing.set(seriesKey(place), {
        labels: place,
        request: known === undefined ? counts.requestProcessing : sum(known.request, counts.requestProcessing),
        response: known === undefined ? counts.responseProcessing : sum(known.response, counts.responseProcessing),
      });
    }
    for (const { labels, request, response } of processing.values()) {
      add("request_processing_seconds", labels, request);
      add("response_processing_seconds", labels, response);
    }
    for (const series of this.#connections.values()) {
      const labels = values(CONNECTION_LABELS, series.labels);
      add("downstream_connections_total", labels, series.connections);
      add("downstream_received_bytes_total", labels, series.received);
      add("downstream_sent_bytes_total", labels, series.sent);
      add("tls_handshake_duration_seconds", labels, series.handshake);
    }
    for (const [key, histogram] of this.#connects) add("upstream_connect_duration_seconds", fromKey(key), histogram);
    for (const [key, histogram] of this.#calls) add("upstream_call_duration_seconds", fromKey(key), histogram);
    return Object.fromEntries(samples);
  }
}

/** Adds up the snapshots of several threads, series by series. */
export function mergeSnapshots(list: readonly MetricsSnapshot[]): MetricsSnapshot {
  const merged = new Map<string, Map<string, Sample>>();
  for (const snapshot of list)
    for (const [name, samples] of Object.entries(snapshot)) {
      const known = upsert(merged, name, () => new Map<string, Sample>());
      for (const sample of samples) {
        const key = seriesKey(sample.labels);
        const before = known.get(key);
        known.set(
          key,
          before === undefined ? sample : { labels: sample.labels, value: sum(before.value, sample.value) },
        );
      }
    }
  return Object.fromEntries(Array.from(merged, ([name, samples]) => [name, [...samples.values()]]));
}

function sum(a: Sample["value"], b: Sample["value"]): Sample["value"] {
  if (typeof a === "number" || typeof b === "number") return Number(a) + Number(b);
  return { bounds: a.bounds, counts: a.counts.map((count, i) => count + (b.counts[i] ?? 0)), sum: a.sum + b.sum };
}

function values<L extends string>(names: readonly L[], labels: Readonly<Record<L, string>>): string[] {
  return names.map((name) => labels[name]);
}

/** No name in a configuration and no method or status holds this character. */
const SEPARATOR = "\u0000";

function seriesKey(labels: readonly string[]): string {
  return labels.join(SEPARATOR);
}

function fromKey(key: string): string[] {
  return key.split(SEPARATOR);
}

function upsert<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}
