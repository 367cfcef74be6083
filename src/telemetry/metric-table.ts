/** Every metric of the data plane (docs/metrics.md), without the prefix, in the order of the text output. */
export const REQUEST_LABELS = [
  "backend",
  "protocol",
  "method",
  "status",
  "reason",
  "bind",
  "gateway",
  "listener",
  "route",
  "route_rule",
] as const;

/** Labels of request histograms. Each series has about fifteen lines, so the labels have few values. */
const DURATION_LABELS = ["route", "method_class", "status_class"] as const;

export const CONNECTION_LABELS = ["bind", "gateway", "listener", "protocol"] as const;

export interface MetricSpec {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
}

export const METRICS = {
  requests_in_flight: { type: "gauge", help: "HTTP requests in progress.", labels: [] },
  requests_total: { type: "counter", help: "HTTP requests handled.", labels: REQUEST_LABELS },
  request_duration_seconds: {
    type: "histogram",
    help: "Time from the first byte of a request to the end of its response.",
    labels: DURATION_LABELS,
  },
  response_bytes_total: { type: "counter", help: "Bytes of response bodies sent to clients.", labels: REQUEST_LABELS },
  retries_total: { type: "counter", help: "Attempts beyond the first.", labels: REQUEST_LABELS },
  retry_overflow_total: {
    type: "counter",
    help: "Failed attempts that were not retried because of maxRetries or retryBudget.",
    labels: ["backend"],
  },
  local_rate_limit_overflow_total: {
    type: "counter",
    help: "Requests that a local rate limit counted together because it had no room for their keys.",
    labels: ["limit"],
  },
  local_rate_limit_evictions_total: {
    type: "counter",
    help: "Limits that were forgotten early because the configuration has too many.",
    labels: [],
  },
  grpc_calls_total: {
    type: "counter",
    help: "gRPC calls that ended, by their status.",
    labels: ["backend", "route", "grpc_status"],
  },
  policy_shadow_total: {
    type: "counter",
    help: "Decisions of policies with `shadow: true`, which have no effect: `allow`, `deny` or `undecided`.",
    labels: ["policy", "decision", "gateway", "listener", "route"],
  },
  request_processing_seconds: {
    type: "histogram",
    help: "Time the gateway took before it called the backend.",
    labels: ["route"],
  },
  response_processing_seconds: {
    type: "histogram",
    help: "Time from the backend's response head to the end of the response.",
    labels: ["route"],
  },
  downstream_connections_total: {
    type: "counter",
    help: "Connections accepted from clients.",
    labels: CONNECTION_LABELS,
  },
  downstream_received_bytes_total: {
    type: "counter",
    help: "Bytes received from clients.",
    labels: CONNECTION_LABELS,
  },
  downstream_sent_bytes_total: { type: "counter", help: "Bytes sent to clients.", labels: CONNECTION_LABELS },
  event_loop_lag_seconds: {
    type: "gauge",
    help: "How late the event loop of a worker was at the last sample.",
    labels: ["worker"],
  },
  overloaded_workers: { type: "gauge", help: "Workers that turn new work away.", labels: ["reason"] },
  overload_rejected_total: {
    type: "counter",
    help: "Requests and connections that were turned away because a worker was overloaded.",
    labels: ["kind", "reason"],
  },
  expression_seconds_total: {
    type: "counter",
    help: "Processor time that expressions have used, estimated from their steps.",
    labels: ["route"],
  },
  expression_rejected_total: {
    type: "counter",
    help: "Requests that were turned away because the expressions of their route had used more than its share.",
    labels: ["route"],
  },
  udp_sessions: {
    type: "gauge",
    help: "Open UDP sessions: clients, by address and port, with a backend.",
    labels: ["bind"],
  },
  udp_datagrams_total: {
    type: "counter",
    help: "Datagrams of UDP sessions: `received` from clients, `sent` to them.",
    labels: ["bind", "gateway", "listener", "direction"],
  },
  udp_dropped_datagrams_total: {
    type: "counter",
    help: "Datagrams that were not forwarded, in either direction.",
    labels: ["bind", "reason"],
  },
  tls_handshake_duration_seconds: {
    type: "histogram",
    help: "Time that TLS handshakes with clients took.",
    labels: CONNECTION_LABELS,
  },
  upstream_connect_duration_seconds: {
    type: "histogram",
    help: "Time that new connections to backends took, TLS included.",
    labels: ["transport"],
  },
  upstream_call_duration_seconds: {
    type: "histogram",
    help: "Time from a call's start to its response head.",
    labels: ["kind", "subtype"],
  },
} as const satisfies Record<string, MetricSpec>;

export type MetricName = keyof typeof METRICS;
