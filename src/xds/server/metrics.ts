import type { ExtraMetric } from "../../telemetry/prometheus.ts";

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
  readonly #counts = BOUNDS.map(() => 0);
  #sum = 0;
  #count = 0;

  /** Seconds from a change of the state to its acknowledgement by one proxy. */
  observePush(seconds: number): void {
    this.#sum += seconds;
    this.#count++;
    for (const [i, bound] of BOUNDS.entries()) if (seconds <= bound) this.#counts[i] = (this.#counts[i] ?? 0) + 1;
  }

  /** `connected`: proxies by Gateway. */
  render(connected: ReadonlyMap<string, number>): ExtraMetric[] {
    const clients = [...connected].map(([gateway, value]) => ({ labels: { gateway }, value }));
    const buckets = BOUNDS.map((bound, i) => ({ labels: { le: String(bound) }, value: this.#counts[i] ?? 0 }));
    buckets.push({ labels: { le: "+Inf" }, value: this.#count });
    const name = "tracegate_xds_push_duration_seconds";
    return [
      counter("auth_rq_total", "Connections of proxies whose token was checked.", this.authRequests),
      counter("auth_rq_success_total", "Connections of proxies that were accepted.", this.authSuccesses),
      counter("auth_rq_failure_total", "Connections of proxies that were rejected.", this.authFailures),
      counter("rejects_total", "Configurations that a proxy has rejected (NACK).", this.rejects),
      counter("pushes_total", "Changes that were sent to a proxy.", this.pushes),
      { name: "tracegate_xds_clients", type: "gauge", help: "Connected proxies.", samples: clients },
      {
        name: `${name}_bucket`,
        type: "counter",
        help: "Time from a change of the configuration to its acknowledgement by a proxy, cumulative.",
        samples: buckets,
      },
      {
        name: `${name}_sum`,
        type: "counter",
        help: "Sum of these times.",
        samples: [{ labels: {}, value: this.#sum }],
      },
      {
        name: `${name}_count`,
        type: "counter",
        help: "Number of these times.",
        samples: [{ labels: {}, value: this.#count }],
      },
    ];
  }
}

function counter(name: string, help: string, value: number): ExtraMetric {
  return { name: `tracegate_xds_${name}`, type: "counter", help, samples: [{ labels: {}, value }] };
}
