import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { call, closedPort, rawClient, Upstream } from "../trace/support.ts";

const REQUEST = [
  "backend",
  "bind",
  "gateway",
  "listener",
  "method",
  "protocol",
  "reason",
  "route",
  "route_rule",
  "status",
];
const CONNECTION = ["bind", "gateway", "listener", "protocol"];

/** Every metric of the data plane with its labels, in alphabetical order. */
const METRICS: Readonly<Record<string, readonly string[]>> = {
  tracegate_build_info: ["tag"],
  tracegate_config_synchronized: [],
  tracegate_endpoint_evicted: ["endpoint"],
  tracegate_endpoint_health: ["endpoint"],
  tracegate_log_lines_dropped_total: ["reason"],
  tracegate_requests_total: REQUEST,
  tracegate_request_duration_seconds: ["method_class", "route", "status_class"],
  tracegate_response_bytes_total: REQUEST,
  tracegate_retries_total: REQUEST,
  tracegate_request_processing_seconds: ["route"],
  tracegate_response_processing_seconds: ["route"],
  tracegate_requests_in_flight: [],
  tracegate_downstream_connections_total: CONNECTION,
  tracegate_downstream_received_bytes_total: CONNECTION,
  tracegate_downstream_sent_bytes_total: CONNECTION,
  tracegate_upstream_connect_duration_seconds: ["transport"],
  tracegate_upstream_connections: ["endpoint", "state"],
  tracegate_upstream_pending_overflow_total: ["endpoint"],
  tracegate_upstream_request_overflow_total: ["endpoint"],
  tracegate_event_loop_lag_seconds: ["worker"],
  tracegate_overloaded_workers: ["reason"],
  tracegate_overload_rejected_total: ["kind", "reason"],
  tracegate_upstream_pending_requests: ["endpoint"],
  tracegate_upstream_call_duration_seconds: ["kind", "subtype"],
};

suite("metrics of a gateway with two workers", () => {
  let upstream: Upstream;
  let gateway: GatewayProcess;

  before(async () => {
    upstream = await Upstream.start();
    gateway = await GatewayProcess.start({
      config: { workerThreads: 2, metrics: { remove: ["retries"] } },
      binds: [
        {
          port: 0,
          listeners: [
            {
              protocol: "HTTP",
              hostname: "a.test",
              routes: [
                {
                  name: "r",
                  ruleName: "rule",
                  matches: [{ path: { pathPrefix: "/r" } }],
                  backends: [{ host: upstream.address }],
                },
                {
                  name: "closed",
                  matches: [{ path: { pathPrefix: "/closed" } }],
                  policies: { apiKey: { mode: "strict", keys: [{ key: "k" }] } },
                  backends: [{ host: upstream.address }],
                },
                {
                  name: "down",
                  matches: [{ path: { pathPrefix: "/down" } }],
                  backends: [{ host: `127.0.0.1:${await closedPort()}` }],
                },
              ],
            },
          ],
        },
      ],
    });
    const port = gateway.port();
    // Separate connections, so that both workers get some.
    for (let i = 0; i < 40; i++) await call(port, { path: "/r" });
    await call(port, { method: "POST", path: "/r", body: "x" });
    await call(port, { path: "/down" });
    await call(port, { path: "/nowhere" });
    await call(port, { path: "/closed" });
    await call(port, { headers: { host: "b.test" } });
    const client = await rawClient(port, "PURGE /r HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    await new Promise((resolve) => client.resume().once("close", resolve));
    const broken = await rawClient(port, "not http\r\n\r\n");
    await new Promise((resolve) => broken.resume().once("close", resolve));
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const scrape = async (path = "/metrics"): Promise<string> => (await fetch(gateway.url("stats") + path)).text();

  test("names and labels", async () => {
    const samples = parse(await scrape());
    for (const [name, labels] of Object.entries(METRICS)) {
      const own = samples.filter((each) => each.name.replace(/_(bucket|sum|count)$/, "") === name);
      if (name === "tracegate_retries_total") {
        assert.deepEqual(own, [], "left out by metrics.remove");
        continue;
      }
      assert.ok(own.length > 0, name);
      for (const { labels: found } of own)
        assert.deepEqual(
          Object.keys(found)
            .filter((label) => label !== "le")
            .sort(),
          [...labels].sort(),
          name,
        );
    }
    const names = new Set(samples.map(({ name }) => name.replace(/_(bucket|sum|count)$/, "")));
    const unknown = [...names].filter((name) => !(name in METRICS) && !name.startsWith("process_"));
    assert.deepEqual(unknown, []);
  });

  test("requests by outcome, summed over the workers", async () => {
    const samples = parse(await scrape("/stats/prometheus"));
    const base = { bind: "bind/0", gateway: "default/default", listener: "listener0", protocol: "http" };
    const r = {
      ...base,
      route: "default/r",
      route_rule: "rule",
      backend: "/default/default/bind/0/listener0/default/r/backend0",
    };
    const down = {
      ...base,
      route: "default/down",
      route_rule: "unknown",
      backend: "/default/default/bind/0/listener0/default/down/backend0",
    };
    const none = { ...base, route: "unknown", route_rule: "unknown", backend: "unknown" };
    const closed = { ...base, route: "default/closed", route_rule: "unknown", backend: "unknown" };
    const nobody = { ...none, gateway: "unknown", listener: "unknown" };
    const count = (labels: Readonly<Record<string, string>>): number | undefined =>
      samples.find((each) => each.name === "tracegate_requests_total" && same(each.labels, labels))?.value;
    assert.equal(count({ ...r, method: "GET", status: "200", reason: "Upstream" }), 40);
    assert.equal(count({ ...r, method: "POST", status: "200", reason: "Upstream" }), 1);
    assert.equal(count({ ...r, method: "unknown", status: "200", reason: "Upstream" }), 1);
    assert.equal(count({ ...down, method: "GET", status: "503", reason: "UpstreamFailure" }), 1);
    const refusals = samples.filter(({ labels }) => labels.status === "401").map(({ labels }) => labels);
    const [{ reason, ...refused } = {}] = refusals;
    assert.deepEqual(refused, { ...closed, method: "GET", status: "401" }, "a rejected request reaches no backend");
    assert.equal(count({ ...none, method: "GET", status: "404", reason: "NotFound" }), 1);
    assert.equal(count({ ...nobody, method: "GET", status: "404", reason: "NotFound" }), 1);
    assert.equal(count({ ...nobody, method: "unknown", status: "400", reason: "InvalidRequest" }), 1);
    const value = (name: string, labels: Readonly<Record<string, string>> = {}): number =>
      samples
        .filter(
          (each) => each.name === name && Object.entries(labels).every(([key, want]) => each.labels[key] === want),
        )
        .reduce((sum, each) => sum + each.value, 0);
    assert.equal(value("tracegate_downstream_connections_total"), 47);
    assert.equal(value("tracegate_request_duration_seconds_count", { route: "default/r" }), 42);
    assert.equal(value("tracegate_request_duration_seconds_bucket", { route: "default/r", le: "+Inf" }), 42);
    assert.equal(value("tracegate_response_bytes_total", { route: "default/r" }), 42 * "hello".length);
    assert.equal(value("tracegate_upstream_call_duration_seconds_count"), 42);
    assert.equal(value("tracegate_build_info"), 1);
    assert.equal(value("tracegate_config_synchronized"), 1);
    assert.ok(value("tracegate_downstream_received_bytes_total") > 0);
    assert.ok(value("tracegate_downstream_sent_bytes_total") > 0);
  });

  test("other paths and methods are rejected", async () => {
    assert.equal((await fetch(`${gateway.url("stats")}/`)).status, 404);
    assert.equal((await fetch(`${gateway.url("stats")}/metrics`, { method: "POST" })).status, 405);
    const { headers } = await fetch(`${gateway.url("stats")}/metrics`);
    assert.equal(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  });

  test("a rejected configuration shows in config_synchronized and in /config/status", async () => {
    assert.equal(await gateway.reconfigure("binds: [{port: nonsense}]"), "rejected");
    const synchronized = parse(await scrape()).find(({ name }) => name === "tracegate_config_synchronized");
    assert.equal(synchronized?.value, 0);
    const status = (await (await fetch(`${gateway.url("admin")}/config/status`)).json()) as {
      synchronized: boolean;
      generation: number;
      lastError: { message: string };
    };
    assert.equal(status.synchronized, false);
    assert.equal(status.generation, 1);
    assert.match(status.lastError.message, /binds\[0\]\.port.*[^\n]$/s);
  });
});

test("a bind has no counters of connections before the first one, and no handshakes without TLS", async () => {
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes: [] }] }] });
  assert.doesNotMatch(gateway.metricsText(), /listener=/);
  await call(gateway.port(), {});
  const text = gateway.metricsText();
  assert.match(text, /^tracegate_downstream_connections_total\{.*gateway="unknown",listener="unknown".*\} 1$/m);
  assert.doesNotMatch(text, /tracegate_tls_handshake/);
});

test("readiness: 500 with what is pending until the gateway is ready, then 200; nothing else is served", async () => {
  const port = await closedPort();
  const url = `http://127.0.0.1:${port}/healthz/ready`;
  // So many routes that the start takes a moment.
  const routes = Array.from({ length: 1000 }, (_, index) => ({ matches: [{ path: { exact: `/${index}` } }] }));
  await using gateway = await GatewayProcess.launch({
    config: { readinessAddr: `127.0.0.1:${port}` },
    binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes }] }],
  });
  const seen = new Map<number, string>();
  const deadline = Date.now() + 30_000;
  while (!seen.has(200)) {
    assert.ok(Date.now() < deadline, [...seen].join());
    const answer = await fetch(url).catch(() => undefined);
    if (answer !== undefined) seen.set(answer.status, await answer.text());
  }
  // On a slow machine, the gateway may be ready before the first probe.
  const texts: Readonly<Record<number, string>> = {
    200: "ready\n",
    500: "not ready, pending: configuration, listeners\n",
  };
  for (const [status, text] of seen) assert.equal(text, texts[status], String(status));
  await gateway.until(() => gateway.ready, "the gateway to be ready");
  assert.equal((await fetch(url, { method: "POST" })).status, 405);
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404);
});

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The samples of the Prometheus text format. */
function parse(text: string): Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name = "", labels = "", value = ""] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key, shown]) => [key, shown]);
      return { name, labels: Object.fromEntries(pairs), value: Number(value) };
    });
}

function same(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  return Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([key, value]) => b[key] === value);
}
