import { Histogram } from "../telemetry/histogram.ts";
import { counter, type ExtraMetric, gauge, histogram, type LabelledSample } from "../telemetry/prometheus.ts";

/** What the controller does repeatedly: label `controller` of its metrics. */
export type ControllerName = "gateway" | "status" | "deployer";

/** Upper bounds of durations, in seconds. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface Series {
  success: number;
  error: number;
  running: number;
  readonly durations: Histogram;
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
      series.durations.observe((performance.now() - startedAt) / 1000);
    }
  }

  render(): ExtraMetric[] {
    const samples = (value: (series: Series) => LabelledSample["value"]): LabelledSample[] =>
      Array.from(this.#series, ([controller, series]) => ({ labels: { controller }, value: value(series) }));
    const results = (["success", "error"] as const).flatMap((result) =>
      samples((series) => series[result]).map(({ labels, value }) => ({ labels: { ...labels, result }, value })),
    );
    return [
      counter("tracegate_controller_reconciliations_total", "Runs of a loop of the controller.", results),
      gauge(
        "tracegate_controller_reconciliations_running",
        "Runs in progress.",
        samples(({ running }) => running),
      ),
      histogram(
        "tracegate_controller_reconcile_duration_seconds",
        "Durations of runs.",
        samples(({ durations }) => durations.snapshot()),
      ),
    ];
  }

  #of(controller: ControllerName): Series {
    let series = this.#series.get(controller);
    if (series === undefined) {
      series = { success: 0, error: 0, running: 0, durations: new Histogram(BOUNDS) };
      this.#series.set(controller, series);
    }
    return series;
  }
}
