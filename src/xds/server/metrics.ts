import { Histogram } from "../../telemetry/histogram.ts";
import { counter, type ExtraMetric, gauge, histogram } from "../../telemetry/prometheus.ts";

/** Upper bounds of the push latency, in seconds. */
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What the stream server counts, for the controller's metrics. */
export class XdsMetrics {
  authRequests = 0;
  authSuccesses = 0;
  authFailures = 0;
  /** Rejections (NACK) of proxies. */
  rejects = 0;
  /** Batches that were sent. */
  pushes = 0;
  /** Seconds from a change of the state to its acknowledgement by one proxy. */
  readonly pushDurations = new Histogram(BOUNDS);

  /** `connected`: proxies by Gateway. */
  render(connected: ReadonlyMap<string, number>): ExtraMetric[] {
    const clients = [...connected].map(([gateway, value]) => ({ labels: { gateway }, value }));
    return [
      counter("tracegate_xds_auth_rq_total", "Connections of proxies whose token was checked.", this.authRequests),
      counter("tracegate_xds_auth_rq_success_total", "Connections of proxies that were accepted.", this.authSuccesses),
      counter("tracegate_xds_auth_rq_failure_total", "Connections of proxies that were rejected.", this.authFailures),
      counter("tracegate_xds_rejects_total", "Configurations that a proxy has rejected (NACK).", this.rejects),
      counter("tracegate_xds_pushes_total", "Changes that were sent to a proxy.", this.pushes),
      gauge("tracegate_xds_clients", "Connected proxies.", clients),
      histogram(
        "tracegate_xds_push_duration_seconds",
        "Time from a change of the configuration to its acknowledgement by a proxy.",
        this.pushDurations.snapshot(),
      ),
    ];
  }
}
