import type { Reason } from "../base/errors.ts";
import type { Metrics, RequestLabels } from "../telemetry/metrics.ts";

/** Methods that get a label of their own: any other token a client invents must not make a new series. */
const KNOWN_METHODS = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);

export type FixedLabels = Omit<RequestLabels, "method" | "status" | "reason">;

/** The counters of one place in the configuration; finds the handle of a request's series without building its labels. */
export class SeriesCache {
  readonly #metrics: Metrics;
  readonly #labels: FixedLabels;
  readonly #backend: string;
  /** Made with the first request: of ten thousand places most see none, and a reload makes them all. */
  #known: Map<string, number> | undefined;
  #lastMethod = "";
  #lastStatus = 0;
  #lastReason = "";
  #last = -1;

  /** `backend` replaces the label of that name. */
  constructor(metrics: Metrics, labels: FixedLabels, backend = labels.backend) {
    this.#metrics = metrics;
    this.#labels = labels;
    this.#backend = backend;
  }

  get(method: string, status: number, reason: Reason): number {
    if (this.#last !== -1 && status === this.#lastStatus && method === this.#lastMethod && reason === this.#lastReason)
      return this.#last;
    const label = KNOWN_METHODS.has(method) ? method : "unknown";
    const key = `${label} ${status} ${reason}`;
    this.#known ??= new Map();
    let series = this.#known.get(key);
    if (series === undefined) {
      const own = { backend: this.#backend, method: label, status: String(status), reason };
      series = this.#metrics.requestSeries({ ...this.#labels, ...own });
      this.#known.set(key, series);
    }
    this.#lastMethod = method;
    this.#lastStatus = status;
    this.#lastReason = reason;
    this.#last = series;
    return series;
  }
}
