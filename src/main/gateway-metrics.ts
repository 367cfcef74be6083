import { X509Certificate } from "node:crypto";
import type { ConfigStatus } from "../admin/plane/config-status.ts";
import type { Ir } from "../ir/ir.ts";
import { counter, type ExtraMetric, gauge, type LabelledSample } from "../telemetry/prometheus.ts";
import type { TlsServer } from "../tls/tls-settings.ts";
import { combineStats, type EndpointStats } from "../upstream/endpoints/endpoints.ts";

/** Endpoints that the configuration does not name: clients choose the targets of `dynamic` backends. */
const UNNAMED: ReadonlySet<string> = new Set(["dynamic", "internal"]);

/**
 * Connections and health by endpoint, `host:port` as the configuration names it, so that clients cannot add label
 * values. The targets of `dynamic` backends are one endpoint, `dynamic`.
 */
export function endpointMetrics(stats: ReadonlyMap<string, EndpointStats>): ExtraMetric[] {
  const named = new Map<string, EndpointStats>();
  for (const each of stats.values()) {
    const owner = each.key.slice(0, each.key.indexOf(" "));
    const name = UNNAMED.has(owner) ? owner : each.target;
    const before = named.get(name);
    named.set(name, before === undefined ? each : combineStats(before, each));
  }
  const samples = (value: (stats: EndpointStats) => number): LabelledSample[] =>
    Array.from(named, ([endpoint, each]) => ({ labels: { endpoint }, value: value(each) }));
  const states = ["active", "idle", "connecting"] as const;
  const connections = Array.from(named).flatMap(([endpoint, { pool }]) =>
    states.map((state) => ({ labels: { endpoint, state }, value: pool[state] })),
  );
  return [
    gauge("tracegate_upstream_connections", "Connections to an endpoint.", connections),
    gauge(
      "tracegate_upstream_pending_requests",
      "Requests that wait for a connection to an endpoint.",
      samples(({ pool }) => pool.waiting),
    ),
    counter(
      "tracegate_upstream_pending_overflow_total",
      "Requests rejected because too many waited for a connection.",
      samples(({ pool }) => pool.overflows),
    ),
    counter(
      "tracegate_upstream_request_overflow_total",
      "Requests rejected because too many to an endpoint were in progress.",
      samples(({ overflows }) => overflows),
    ),
    gauge(
      "tracegate_endpoint_health",
      "Share of an endpoint's latest calls that succeeded, 0 to 1.",
      samples(({ health }) => health),
    ),
    gauge(
      "tracegate_endpoint_evicted",
      "1 while an endpoint gets no calls because it failed.",
      samples(({ evictedMs }) => (evictedMs === null ? 0 : 1)),
    ),
    ...checkMetrics(named),
  ];
}

/** Metrics of endpoints with an active health check; empty without any. */
function checkMetrics(named: ReadonlyMap<string, EndpointStats>): ExtraMetric[] {
  const checked = Array.from(named).flatMap(([endpoint, { check }]) => (check === null ? [] : [{ endpoint, check }]));
  if (checked.length === 0) return [];
  const probes = checked.flatMap(({ endpoint, check }) => [
    { labels: { endpoint, result: "success" }, value: check.passed },
    { labels: { endpoint, result: "failure" }, value: check.failed },
  ]);
  const states = checked.map(({ endpoint, check }) => ({
    labels: { endpoint },
    value: check.healthy === false ? 0 : 1,
  }));
  return [
    gauge("tracegate_endpoint_healthy", "0 while active health checks of an endpoint fail, else 1.", states),
    counter("tracegate_health_checks_total", "Probes by active health checks.", probes),
  ];
}

/** Seconds since 1970 by the listener's settings, so that certificates are parsed once. */
const expiries = new WeakMap<TlsServer, number>();

/** Expiry of the server certificates of listeners; no metric without any. */
export function certificateMetrics({ binds }: Ir): ExtraMetric[] {
  const samples: LabelledSample[] = [];
  for (const { key: bind, listeners } of binds)
    for (const { tls, name: listener, gatewayNamespace, gatewayName } of listeners)
      if (tls !== undefined && tls.pending === undefined) {
        const labels = { bind, gateway: `${gatewayNamespace}/${gatewayName}`, listener };
        samples.push({ labels, value: expiryOf(tls) });
      }
  if (samples.length === 0) return [];
  const help = "When the first of a listener's certificates expires, or its CA for a listener that makes certificates.";
  return [gauge("tracegate_certificate_expiry_timestamp_seconds", help, samples)];
}

/** When fetching a document of the configuration began to fail; no series while none fails. */
export function documentMetrics({ missingDocuments = [] }: ConfigStatus): ExtraMetric[] {
  if (missingDocuments.length === 0) return [];
  const samples = missingDocuments.map(({ url, since, formerInUse }) => ({
    labels: { url, former_in_use: String(formerInUse) },
    value: Date.parse(since) / 1000,
  }));
  const help = "When fetching a document of the configuration began to fail.";
  return [gauge("tracegate_document_failing_since_timestamp_seconds", help, samples)];
}

function expiryOf(tls: TlsServer): number {
  let expiry = expiries.get(tls);
  if (expiry === undefined) {
    // The first certificate of a chain is the server's.
    const times = [tls, ...(tls.otherCertificates ?? [])].map(({ cert }) => new X509Certificate(cert).validToDate);
    expiry = Math.min(...times.map((time) => time.getTime())) / 1000;
    expiries.set(tls, expiry);
  }
  return expiry;
}
