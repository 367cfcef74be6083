/** Requests that stand for buckets of histograms, so that a spike in a graph leads to a request. */
import { methodClass, statusClass } from "./counter-memory.ts";
import { bucketOf, PROCESSING_BOUNDS, REQUEST_BOUNDS } from "./histogram.ts";
import type { MetricName } from "./metric-table.ts";

/** What finds a request again. */
interface RequestIds {
  /** Of the flight recorder. */
  readonly record: string;
  readonly trace: string | undefined;
  readonly request: string | undefined;
}

/** A request with a response, or one that has ended without; times in milliseconds. */
export interface TimedRequest {
  /** Label of the metrics. */
  readonly route: string;
  readonly method: string;
  /** 0 = none was sent. */
  readonly status: number;
  /** Since the epoch. */
  readonly endedAt: number;
  readonly duration: number;
  /** From the start to the call, and from the backend's response head to the end; undefined without a response of a backend. */
  readonly processing: { readonly request: number; readonly response: number } | undefined;
  /** Computed only for requests that become exemplars. */
  readonly ids: RequestIds;
}

export interface Exemplar {
  readonly labels: Readonly<Record<string, string>>;
  /** Seconds. */
  readonly value: number;
  /** Seconds since the epoch. */
  readonly time: number;
}

/** At most so many characters of names and values together (OpenMetrics 1.0, "Exemplars"). */
const MOST_CHARACTERS = 128;

/** The newest of the requests that were added, for each bucket of each series. */
export class Exemplars {
  readonly #metrics = new Series();

  add(request: TimedRequest): void {
    const { route, method, status, duration, processing } = request;
    const durations = this.#of("request_duration_seconds").at(route).at(methodClass(method));
    durations.at(statusClass(String(status))).add(REQUEST_BOUNDS, duration, request);
    if (processing === undefined) return;
    const before = this.#of("request_processing_seconds").at(route);
    before.add(PROCESSING_BOUNDS, processing.request, request);
    const after = this.#of("response_processing_seconds").at(route);
    after.add(PROCESSING_BOUNDS, processing.response, request);
  }

  #of(metric: MetricName): Series {
    return this.#metrics.at(metric);
  }

  /** Of a series, by the positions of its buckets; undefined if it has none. */
  of(metric: MetricName, labels: readonly string[]): readonly (Exemplar | undefined)[] | undefined {
    return this.#metrics.find([metric, ...labels])?.buckets;
  }
}

/** The series whose labels begin alike. To find each by one text, joined from its labels, doubled the time of a scrape. */
class Series {
  readonly buckets: (Exemplar | undefined)[] = [];
  readonly #longer = new Map<string, Series>();

  /** Those with one more label. */
  at(label: string): Series {
    let series = this.#longer.get(label);
    if (series === undefined) {
      series = new Series();
      this.#longer.set(label, series);
    }
    return series;
  }

  find(labels: readonly string[]): Series | undefined {
    let series: Series | undefined = this;
    for (const label of labels) series = series === undefined ? undefined : series.#longer.get(label);
    return series;
  }

  /** Keeps a request that is newer than the one of its bucket. */
  add(bounds: readonly number[], milliseconds: number, request: TimedRequest): void {
    const value = milliseconds / 1000;
    const time = request.endedAt / 1000;
    const bucket = bucketOf(bounds, value);
    const known = this.buckets[bucket];
    if (known === undefined || known.time < time) this.buckets[bucket] = { labels: labelsOf(request.ids), value, time };
  }
}

function labelsOf({ record, trace, request }: RequestIds): Exemplar["labels"] {
  const labels: Record<string, string> = {};
  let left = MOST_CHARACTERS;
  // The id of the request comes last: clients may choose it, and its length.
  for (const [name, value] of Object.entries({ record_id: record, trace_id: trace, request_id: request })) {
    if (value === undefined || name.length + value.length > left) continue;
    labels[name] = value;
    left -= name.length + value.length;
  }
  return labels;
}
