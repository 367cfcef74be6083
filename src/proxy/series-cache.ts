import type { Reason } from "../base/errors.ts";
import type { Metrics, RequestLabels } from "../telemetry/metrics.ts";

/** Methods that get a label of their own: any other token a client invents must not make a new series. */
const KNOWN_METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);

export type FixedLabels = Omit<RequestLabels, "method" | "status" | "reason">;

/** The counters of one place in the configuration; finds the handle of a request's series without building its labels. */
export class SeriesCache {
  readonly #metrics: Metrics;
  readonly #labels: FixedLabels;
  readonly #known = new Map<string, number>();
  #lastMethod = "";
  #lastStatus = 0;
  #lastReason = "";
  #last = -1;

  constructor(metrics: Metrics, labels: FixedLabels) {
    this.#metrics = metrics;
    this.#labels = labels;
  }

  get(method: string, status: number, reason: Reason): number {
    if (this.#last !== -1 && status === this.#lastStatus && method === this.#lastMethod && reason === this.#lastReason)
      return this.#last;
    const label = KNOWN_METHODS.has(method) ? method : "unknown";
    const key = `${label} ${status} ${reason}`;
    let series = this.#known.get(key);
    if (series === undefined) {
      series = this.#metrics.requestSeries({ ...this.#labels, method: label, status: String(status), reason });
      this.#known.set(key, series);
    }
    this.#lastMethod = method;
    this.#lastStatus = status;
    this.#lastReason = reason;
    this.#last = series;
    return series;
  }
}
