/** The counters of requests, found by their place in the configuration. */
import type { Reason } from "../../base/errors.ts";
import { KNOWN_METHODS } from "../../base/http-methods.ts";
import type { Listener } from "../../ir/ir.ts";
import type { Place, PlaceLabels, Recorder } from "../../recorder/recorder.ts";
import { UNKNOWN } from "../../telemetry/custom-labels.ts";
import { type Count, type Metrics, OTHER, type RequestLabels } from "../../telemetry/metrics.ts";

/** UNAUTHENTICATED is the last status of gRPC; backends that send others must not make new series. */
const LAST_GRPC_STATUS = 16;

export type FixedLabels = Omit<RequestLabels, "method" | "status" | "reason">;

export const UNROUTED: Omit<FixedLabels, "bind"> = {
  backend: "unknown",
  protocol: "http",
  gateway: "unknown",
  listener: "unknown",
  route: "unknown",
  route_rule: "unknown",
};

export function listenerLabels(bind: string, { gatewayNamespace, gatewayName, name }: Listener): FixedLabels {
  return { ...UNROUTED, bind, gateway: `${gatewayNamespace}/${gatewayName}`, listener: name };
}

/** The counters of one place in the configuration; finds the handle of a request's series without building its labels. */
export class SeriesCache {
  // The result for most requests comes first, where one cache line holds it.
  #lastMethod = "";
  #lastStatus = 0;
  #lastReason = "";
  #last = -1;
  readonly #metrics: Metrics;
  readonly #labels: FixedLabels;
  readonly #backend: string;
  /** Made with the first request: a reload may make ten thousand caches, and most see no request. */
  #known: Map<string, number> | undefined;
  /** By status; the last two are for other statuses and for none. */
  #grpc: (Count | undefined)[] | undefined;
  #shadow: Map<string, Count> | undefined;
  #place: Place | undefined;

  /** `backend` replaces the label of that name. */
  constructor(metrics: Metrics, labels: FixedLabels, backend = labels.backend) {
    this.#metrics = metrics;
    this.#labels = labels;
    this.#backend = backend;
  }

  get(method: string, status: number, reason: Reason): number {
    if (this.#last !== -1 && status === this.#lastStatus && method === this.#lastMethod && reason === this.#lastReason)
      return this.#last;
    const label = methodLabel(method);
    const key = `${label} ${status} ${reason}`;
    this.#known ??= new Map();
    let series = this.#known.get(key);
    if (series === undefined) {
      series = this.#metrics.requestSeries(this.#with(label, status, reason));
      this.#known.set(key, series);
    }
    this.#lastMethod = method;
    this.#lastStatus = status;
    this.#lastReason = reason;
    this.#last = series;
    return series;
  }

  /** The same with values of the custom labels. */
  getCustom(method: string, status: number, reason: Reason, custom: readonly string[]): number {
    const label = methodLabel(method);
    const key = `${label} ${status} ${reason}\u0000${custom.join("\u0000")}`;
    this.#known ??= new Map();
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const labels = this.#with(label, status, reason);
    const series = this.#metrics.customSeries(labels, custom);
    // Clients may send any number of values beyond the limit of series, so these are not cached here either.
    if (series === undefined) return this.#metrics.otherSeries(labels);
    this.#known.set(key, series);
    return series;
  }

  /** The counter of gRPC calls that ended with `status`; undefined = the client has seen none. */
  grpcCalls(status: number | undefined): Count {
    this.#grpc ??= [];
    const index = status === undefined ? LAST_GRPC_STATUS + 2 : Math.min(status, LAST_GRPC_STATUS + 1);
    let count = this.#grpc[index];
    if (count === undefined) {
      const label = status === undefined ? UNKNOWN : index > LAST_GRPC_STATUS ? OTHER : String(status);
      count = this.#metrics.count("grpc_calls_total", this.#backend, this.#labels.route, label);
      this.#grpc[index] = count;
    }
    return count;
  }

  /** The counter of a shadow policy's decisions. */
  shadowDecisions(policy: string, decision: string): Count {
    const key = `${policy} ${decision}`;
    this.#shadow ??= new Map();
    let count = this.#shadow.get(key);
    if (count === undefined) {
      const { gateway, listener, route } = this.#labels;
      count = this.#metrics.count("policy_shadow_total", policy, decision, gateway, listener, route);
      this.#shadow.set(key, count);
    }
    return count;
  }

  /** This place of the configuration, for the records of its requests. */
  placeIn(recorder: Recorder): Place {
    this.#place ??= recorder.place(this.place);
    return this.#place;
  }

  /** This place as labels of metrics; `unknown` for parts that were not reached. */
  get place(): PlaceLabels {
    return { ...this.#labels, backend: this.#backend };
  }

  #with(method: string, status: number, reason: Reason): RequestLabels {
    return { ...this.#labels, backend: this.#backend, method, status: String(status), reason };
  }
}

function methodLabel(method: string): string {
  return KNOWN_METHODS.has(method) ? method : "unknown";
}
