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

const metric =
  (type: MetricSpec["type"]) =>
  <const Labels extends readonly string[]>(labels: Labels, help: string) => ({ type, help, labels });
const counter = metric("counter");
const gauge = metric("gauge");
const histogram = metric("histogram");

export const METRICS = {
  requests_in_flight: gauge([], "HTTP requests in progress."),
  requests_total: counter(REQUEST_LABELS, "HTTP requests handled."),
  request_duration_seconds: histogram(
    DURATION_LABELS,
    "Time from the first byte of a request to the end of its response.",
  ),
  response_bytes_total: counter(REQUEST_LABELS, "Bytes of response bodies sent to clients."),
  retries_total: counter(REQUEST_LABELS, "Attempts beyond the first."),
  retry_overflow_total: counter(
    ["backend"],
    "Failed attempts that were not retried because of maxRetries or retryBudget.",
  ),
  local_rate_limit_overflow_total: counter(
    ["limit"],
    "Requests that a local rate limit counted together because it had no room for their keys.",
  ),
  local_rate_limit_evictions_total: counter(
    [],
    "Limits that were forgotten early because the configuration has too many.",
  ),
  concurrency_limit_overflow_total: counter(
    ["limit"],
    "Requests that a concurrency limit counted together because it had no room for their keys.",
  ),
  oidc_logins_total: counter(["issuer", "outcome"], "Logins by `oidc`: begun, completed, or why they failed."),
  oidc_refreshes_total: counter(["issuer", "outcome"], "Refreshes of the tokens of sessions of `oidc`."),
  oidc_logouts_total: counter(["issuer", "by", "outcome"], "Logouts of sessions of `oidc`, by users or the provider."),
  grpc_calls_total: counter(["backend", "route", "grpc_status"], "gRPC calls that ended, by their status."),
  policy_shadow_total: counter(
    ["policy", "decision", "gateway", "listener", "route"],
    "Decisions of policies with `shadow: true`, which have no effect: `allow`, `deny` or `undecided`.",
  ),
  request_processing_seconds: histogram(["route"], "Time the gateway took before it called the backend."),
  response_processing_seconds: histogram(
    ["route"],
    "Time from the backend's response head to the end of the response.",
  ),
  downstream_connections_total: counter(CONNECTION_LABELS, "Connections accepted from clients."),
  downstream_denied_connections_total: counter(
    ["bind", "policy"],
    "Connections that were closed because their client may not connect.",
  ),
  downstream_received_bytes_total: counter(CONNECTION_LABELS, "Bytes received from clients."),
  downstream_sent_bytes_total: counter(CONNECTION_LABELS, "Bytes sent to clients."),
  event_loop_lag_seconds: gauge(["worker"], "How late the event loop of a worker was at the last sample."),
  overloaded_workers: gauge(["reason"], "Workers that turn new work away."),
  overload_rejected_total: counter(
    ["kind", "reason"],
    "Requests and connections that were turned away because a worker was overloaded.",
  ),
  expression_seconds_total: counter(
    ["route"],
    "Processor time that expressions have used, estimated from their steps.",
  ),
  expression_rejected_total: counter(
    ["route"],
    "Requests that were turned away because the expressions of their route had used more than its share.",
  ),
  udp_sessions: gauge(["bind"], "Open UDP sessions: clients, by address and port, with a backend."),
  udp_datagrams_total: counter(
    ["bind", "gateway", "listener", "direction"],
    "Datagrams of UDP sessions: `received` from clients, `sent` to them.",
  ),
  udp_dropped_datagrams_total: counter(["bind", "reason"], "Datagrams that were not forwarded, in either direction."),
  tls_handshake_duration_seconds: histogram(CONNECTION_LABELS, "Time that TLS handshakes with clients took."),
  upstream_connect_duration_seconds: histogram(
    ["transport"],
    "Time that new connections to backends took, TLS included.",
  ),
  upstream_call_duration_seconds: histogram(["kind", "subtype"], "Time from a call's start to its response head."),
} satisfies Record<string, MetricSpec>;

export type MetricName = keyof typeof METRICS;
