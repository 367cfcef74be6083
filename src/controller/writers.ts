import type { LogOutput } from "../base/log.ts";
import type { KubeClient } from "../kube/client.ts";
import type { ExtraMetric } from "../telemetry/prometheus.ts";
import type { Graph } from "./graph.ts";
import type { ReconcileMetrics } from "./metrics.ts";
import type { ControllerSettings } from "./settings.ts";
import { desiredStatuses } from "./status/statuses.ts";
import { StatusWriter } from "./status/writer.ts";

export interface ClusterWritersOptions {
  readonly client: KubeClient;
  readonly graph: Graph;
  readonly settings: ControllerSettings;
  readonly version: string;
  readonly output: LogOutput;
  readonly metrics: ReconcileMetrics;
  /** To be called when they have set an input of the graph. */
  readonly changed: () => void;
}

/** Everything that writes to the cluster, from the beginning of this replica's leadership to its end. */
export class ClusterWriters {
  readonly #options: ClusterWritersOptions;
  readonly #statuses: StatusWriter;

  constructor(options: ClusterWritersOptions) {
    const { client, graph, settings, output } = options;
    this.#options = options;
    this.#statuses = new StatusWriter({
      client,
      controllerName: settings.controllerName,
      live: (kind, key) => graph.get(kind, key),
      log: output.logger("gateway-controller"),
    });
  }

  /** Compares what is with what should be. */
  update(): void {
    const { graph, metrics } = this.#options;
    metrics.run("status", () => this.#statuses.update(graph.query(desiredStatuses, "")));
  }

  render(): ExtraMetric[] {
    const { writes, failures, conflicts } = this.#statuses.counters;
    const counts = { writes, failures, conflicts };
    return [
      {
        name: "tracegate_controller_status_writes_total",
        type: "counter",
        help: "Requests that write a status, those that failed, and those that another writer came before.",
        samples: Object.entries(counts).map(([result, value]) => ({ labels: { result }, value })),
      },
    ];
  }

  /** Resolves when nothing is written any more. */
  async close(): Promise<void> {
    await this.#statuses.close();
  }
}
