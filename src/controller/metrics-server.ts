import { type RunningServer, startHttpServer } from "../admin/server/http-server.ts";
import { textReply } from "../admin/server/reply.ts";
import { metricsReply } from "../admin/stats-server.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Logger } from "../base/log.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import type { Kind } from "../kube/objects.ts";
import type { ReflectorState } from "../kube/reflector.ts";
import { processMetrics } from "../telemetry/process-metrics.ts";
import { type ExtraMetric, gauge, type MetricsFormat, renderMetrics } from "../telemetry/prometheus.ts";

/** The sources of the metrics. */
export interface ControllerCounters {
  readonly version: string;
  readonly leading: boolean;
  readonly objects: readonly { readonly kind: Kind; readonly state: ReflectorState; readonly count: number }[];
  /** Of parts of the controller. */
  readonly extra: readonly ExtraMetric[];
}

/** Starts the server for Prometheus. @throws Error when the address cannot be used */
export function startMetricsServer(
  counters: () => ControllerCounters,
  address: ListenAddress,
  log: Logger,
  own: OwnSockets,
): Promise<RunningServer> {
  const metricsText = async (format: MetricsFormat): Promise<string> =>
    renderMetrics({}, await metricsOf(counters()), { format });
  return startHttpServer(address, {
    name: "metrics",
    setting: "the metrics port",
    log,
    own,
    handle: async (request) =>
      (await metricsReply({ metricsText }, request)) ?? textReply(404, "not found; the metrics are at /metrics\n"),
  });
}

async function metricsOf({ version, leading, objects, extra }: ControllerCounters): Promise<ExtraMetric[]> {
  const all = await processMetrics({ tag: version, synchronized: true });
  return [
    ...all.filter(({ name }) => name.startsWith("process_")),
    gauge("tracegate_controller_build_info", "Version of the controller.", [{ labels: { version }, value: 1 }]),
    gauge("tracegate_controller_leader", "1 while this replica writes statuses and deployments.", leading ? 1 : 0),
    gauge(
      "tracegate_controller_objects",
      "Objects of the cluster that the controller holds.",
      objects.map(({ kind, count }) => ({ labels: { kind }, value: count })),
    ),
    gauge(
      "tracegate_controller_watch_healthy",
      "1 while a kind is followed, 0 while it is out of reach or not installed.",
      objects.map(({ kind, state }) => ({ labels: { kind }, value: state === "following" ? 1 : 0 })),
    ),
    ...extra,
  ];
}
