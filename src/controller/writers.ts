import type { LogOutput } from "../base/log.ts";
import type { KubeClient } from "../kube/client.ts";
import type { EventRecorder } from "../kube/events.ts";
import { counter, type ExtraMetric, type LabelledSample } from "../telemetry/prometheus.ts";
import type { ControllerSettings } from "./base/settings.ts";
import { ClassKeeper } from "./deploy/class-keeper.ts";
import { Deployer } from "./deploy/deployer.ts";
import { deploymentsQuery, type FleetDeployment } from "./deploy/deployments.ts";
import type { Graph, Query, Read } from "./graph/graph.ts";
import { deploymentReport } from "./graph/inputs.ts";
import { IngressEvents } from "./ingress-events.ts";
import { CertificateKeeper, keptCertificates } from "./kept-certificates.ts";
import type { ControllerName, ReconcileMetrics } from "./metrics.ts";
import { allIngressProblems } from "./status/ingress-statuses.ts";
import { desiredStatuses } from "./status/statuses.ts";
import { StatusWriter } from "./status/writer.ts";

interface ClusterWritersOptions {
  readonly client: KubeClient;
  readonly graph: Graph;
  readonly settings: ControllerSettings;
  readonly version: string;
  readonly output: LogOutput;
  readonly events: EventRecorder;
  readonly metrics: ReconcileMetrics;
  /** To be called when they have set an input of the graph. */
  readonly changed: () => void;
}

/** Everything that writes to the cluster, from the beginning of this replica's leadership to its end. */
export class ClusterWriters {
  readonly #options: ClusterWritersOptions;
  readonly #statuses: StatusWriter;
  readonly #deployments: Query<readonly FleetDeployment[]>;
  readonly #deployer: Deployer;
  readonly #classes: ClassKeeper;
  readonly #certificates: CertificateKeeper;
  readonly #ingressEvents: IngressEvents;
  readonly #closing = new AbortController();
  readonly #deploying: Promise<void>;

  constructor(options: ClusterWritersOptions) {
    const { client, graph, settings, version, output } = options;
    this.#options = options;
    const xdsCa = (read: Read): string | undefined => read.get("StreamAuthority", "controller")?.ca;
    this.#deployments = deploymentsQuery({ settings, version, xdsCa });
    const log = output.logger("deployer");
    this.#deployer = new Deployer({
      client,
      settings,
      log,
      report: (fleet, error) => this.#report(fleet, error),
    });
    this.#deploying = this.#deployer.run(this.#closing.signal);
    this.#classes = new ClassKeeper(client, settings, log);
    this.#certificates = new CertificateKeeper(client, log);
    this.#ingressEvents = new IngressEvents(options.events, (key) => graph.get("Ingress", key));
    this.#statuses = new StatusWriter({
      client,
      controllerName: settings.controllerName,
      live: (kind, key) => graph.get(kind, key),
      log: output.logger("gateway-controller"),
    });
  }

  /** Compares the actual with the desired state. */
  update(): void {
    const { graph, metrics, settings } = this.#options;
    this.#classes.update(graph.get("GatewayClass", settings.className));
    // Run separately: a bug in one must not stop the other.
    const errors: unknown[] = [];
    const attempt = (controller: ControllerName, work: () => void): void => {
      try {
        metrics.run(controller, work);
      } catch (error) {
        errors.push(error);
      }
    };
    attempt("deployer", () => this.#certificates.update(graph.query(keptCertificates, "")));
    attempt("deployer", () => this.#deployer.update(graph.query(this.#deployments, "")));
    attempt("status", () => this.#statuses.update(graph.query(desiredStatuses, "")));
    attempt("status", () => this.#ingressEvents.update(graph.query(allIngressProblems, "")));
    if (errors.length > 0) throw errors[0];
  }

  render(): ExtraMetric[] {
    const byResult = (counts: Readonly<Record<string, number>>): LabelledSample[] =>
      Object.entries(counts).map(([result, value]) => ({ labels: { result }, value }));
    const { writes, failures, conflicts } = this.#statuses.counters;
    const { applied, deleted, failures: failed } = this.#deployer.counters;
    return [
      counter(
        "tracegate_controller_deployments_total",
        "Objects of Gateways that were applied or deleted, and runs that failed.",
        byResult({ applied, deleted, failures: failed }),
      ),
      counter(
        "tracegate_controller_status_writes_total",
        "Requests that write a status, those that failed, and those that another writer came before.",
        byResult({ writes, failures, conflicts }),
      ),
    ];
  }

  /** Resolves when no write is in progress. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#statuses.close(), this.#classes.close(), this.#certificates.close(), this.#deploying]);
  }

  #report(fleet: string, error: string | undefined): void {
    const { graph, changed } = this.#options;
    if (error === undefined) graph.delete("DeploymentReport", fleet);
    else graph.set(deploymentReport(fleet, error));
    changed();
  }
}
