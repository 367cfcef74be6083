import type { ExtraMetric } from "../telemetry/prometheus.ts";
import { combineStats, type EndpointStats } from "../upstream/endpoints.ts";

type Samples = ExtraMetric["samples"];

/** Endpoints that no configuration names: clients choose the targets of `dynamic` backends. */
const UNNAMED: ReadonlySet<string> = new Set(["dynamic", "internal"]);

/**
 * Connections and health by endpoint, `host:port` as the configuration names it, so that their number is that of the
 * configuration. The targets of `dynamic` backends are one endpoint, `dynamic`.
 */
export function endpointMetrics(stats: ReadonlyMap<string, EndpointStats>): ExtraMetric[] {
  const named = new Map<string, EndpointStats>();
  for (const each of stats.values()) {
    const owner = each.key.slice(0, each.key.indexOf(" "));
    const name = UNNAMED.has(owner) ? owner : each.target;
    const before = named.get(name);
    named.set(name, before === undefined ? each : combineStats(before, each));
  }
  const samples = (value: (stats: EndpointStats) => number): Samples =>
    Array.from(named, ([endpoint, each]) => ({ labels: { endpoint }, value: value(each) }));
  const states = ["active", "idle", "connecting"] as const;
  const connections = Array.from(named).flatMap(([endpoint, { pool }]) =>
    states.map((state) => ({ labels: { endpoint, state }, value: pool[state] })),
  );
  return [
    gauge("upstream_connections", "Connections to an endpoint.", connections),
    gauge(
      "upstream_pending_requests",
      "Requests that wait for a connection to an endpoint.",
      samples(({ pool }) => pool.waiting),
    ),
    {
      ...gauge(
        "upstream_pending_overflow_total",
        "Requests that were refused because too many waited for a connection.",
        samples(({ pool }) => pool.overflows),
      ),
      type: "counter",
    },
    gauge(
      "endpoint_health",
      "Share of an endpoint's latest calls that succeeded, 0 to 1.",
      samples(({ health }) => health),
    ),
    gauge(
      "endpoint_evicted",
      "1 while an endpoint gets no calls because it failed.",
      samples(({ evictedMs }) => (evictedMs === null ? 0 : 1)),
    ),
  ];
}

function gauge(name: string, help: string, samples: Samples): ExtraMetric {
  return { name: `tracegate_${name}`, type: "gauge", help, samples };
}
