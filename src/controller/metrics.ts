import type { ExtraMetric } from "../telemetry/prometheus.ts";

/** What the controller does repeatedly: label `controller` of its metrics. */
export type ControllerName = "gateway" | "status" | "deployer";

/** Upper bounds of durations, in seconds. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface Series {
  success: number;
  error: number;
  running: number;
  sum: number;
  readonly counts: number[];
}

/** Counts runs of the controller's loops. docs/metrics.md#controller has their names and labels. */
export class ReconcileMetrics {
  readonly #series = new Map<ControllerName, Series>();

  /** Runs `work` and counts it. What it throws is counted as an error and passed on. */
  run<T>(controller: ControllerName, work: () => T): T {
    const series = this.#of(controller);
    const startedAt = performance.now();
    series.running++;
    let result: "success" | "error" = "error";
    try {
      const value = work();
      result = "success";
      return value;
    } finally {
      series.running--;
      series[result]++;
      const seconds = (performance.now() - startedAt) / 1000;
      series.sum += seconds;
      const bucket = BOUNDS.findIndex((bound) => seconds <= bound);
      const index = bucket < 0 ? BOUNDS.length : bucket;
      series.counts[index] = (series.counts[index] ?? 0) + 1;
    }
  }

  render(): ExtraMetric[] {
    const all = [...this.#series];
    const duration = "tracegate_controller_reconcile_duration_seconds";
    const total = (counts: readonly number[], until: number): number =>
      counts.slice(0, until).reduce((sum, count) => sum + count, 0);
    return [
      {
        name: "tracegate_controller_reconciliations_total",
        type: "counter",
        help: "Runs of a loop of the controller.",
        samples: all.flatMap(([controller, { success, error }]) => [
          { labels: { controller, result: "success" }, value: success },
          { labels: { controller, result: "error" }, value: error },
        ]),
      },
      {
        name: "tracegate_controller_reconciliations_running",
        type: "gauge",
        help: "Runs in progress.",
        samples: all.map(([controller, { running }]) => ({ labels: { controller }, value: running })),
      },
      {
        name: `${duration}_bucket`,
        type: "counter",
        help: "Durations of runs, cumulative.",
        samples: all.flatMap(([controller, { counts }]) => [
          ...BOUNDS.map((le, i) => ({ labels: { controller, le: String(le) }, value: total(counts, i + 1) })),
          { labels: { controller, le: "+Inf" }, value: total(counts, counts.length) },
        ]),
      },
      {
        name: `${duration}_sum`,
        type: "counter",
        help: "Sum of durations.",
        samples: all.map(([controller, { sum }]) => ({ labels: { controller }, value: sum })),
      },
      {
        name: `${duration}_count`,
        type: "counter",
        help: "Number of durations.",
        samples: all.map(([controller, { counts }]) => ({
          labels: { controller },
          value: total(counts, counts.length),
        })),
      },
    ];
  }

  #of(controller: ControllerName): Series {
    let series = this.#series.get(controller);
    if (series === undefined) {
      series = { success: 0, error: 0, running: 0, sum: 0, counts: new Array<number>(BOUNDS.length + 1).fill(0) };
      this.#series.set(controller, series);
    }
    return series;
  }
}
