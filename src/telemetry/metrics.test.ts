import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram } from "./histogram.ts";
import { MAX_CUSTOM_SERIES, Metrics, mergeSnapshots, type RequestLabels } from "./metrics.ts";
import { processMetrics } from "./process-metrics.ts";
import { histogram, renderMetrics } from "./prometheus.ts";

const labels: RequestLabels = {
  backend: "default/b",
  protocol: "http",
  method: "GET",
  status: "200",
  reason: "Upstream",
  bind: "bind/80",
  gateway: "default/default",
  listener: "listener0",
  route: 'default/"r"\\x',
  route_rule: "",
};

/** Lines of the text that are samples of one metric. */
function samples(text: string, name: string): string[] {
  return text.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

function render(...list: Metrics[]): string {
  const snapshots = list.map((metrics) => structuredClone(metrics.snapshot()));
  return renderMetrics(mergeSnapshots(snapshots), []);
}

test("the same labels give the same series, and the series of a route share their processing times", () => {
  const metrics = new Metrics();
  const series = metrics.requestSeries(labels);
  assert.equal(metrics.requestSeries({ ...labels }), series);
  const other = metrics.requestSeries({ ...labels, status: "404" });
  assert.notEqual(other, series);
  metrics.requests.countProcessing(series, 0.1, 0);
  metrics.requests.countProcessing(other, 0.2, 0);
  assert.equal(metrics.snapshot().request_processing_seconds?.length, 1);
  const sums = samples(render(metrics), "tracegate_request_processing_seconds_sum");
  assert.equal(Number(sums[0]?.split(" ")[1]).toFixed(1), "0.3");
});

test("many series keep separate counts while the table grows", () => {
  const metrics = new Metrics();
  const series = Array.from({ length: 300 }, (_, i) => metrics.requestSeries({ ...labels, route: `r${i}` }));
  for (const [i, row] of series.entries()) metrics.requests.count(row, 0.01, i, 0);
  const bytes = metrics.snapshot().response_bytes_total?.map((sample) => sample.value);
  assert.deepEqual(
    bytes,
    Array.from({ length: 300 }, (_, i) => i),
  );
});

test("counters of several threads are added up", () => {
  const [first, second] = [new Metrics(), new Metrics()];
  const count = (metrics: Metrics, of: RequestLabels, seconds: number): void =>
    metrics.requests.count(metrics.requestSeries(of), seconds, 0, 0);
  count(first, labels, 100);
  count(second, labels, 0.2);
  count(second, { ...labels, status: "500" }, 0.2);
  const text = render(first, second);
  assert.deepEqual(
    samples(text, "tracegate_requests_total").map((line) => line.replace(/.*status="(\d+)".* /, "$1=")),
    ["200=2", "500=1"],
  );
  const series = `{backend="default/b",protocol="http",method="GET",status="200",reason="Upstream",bind="bind/80",gateway="default/default",listener="listener0",route="default/\\"r\\"\\\\x",route_rule="unknown"`;
  const lines = text.split("\n");
  assert.ok(lines.includes(`tracegate_requests_total${series}} 2`));
  const times = `{route="default/\\"r\\"\\\\x",method_class="safe",status_class="2xx"`;
  assert.ok(lines.includes(`tracegate_request_duration_seconds_bucket${times},le="0.1"} 0`));
  assert.ok(lines.includes(`tracegate_request_duration_seconds_bucket${times},le="0.25"} 1`));
  assert.ok(lines.includes(`tracegate_request_duration_seconds_bucket${times},le="+Inf"} 2`));
  assert.ok(lines.includes(`tracegate_request_duration_seconds_sum${times}} 100.2`));
  assert.ok(lines.includes(`tracegate_request_duration_seconds_count${times}} 2`));
});

test("durations are grouped by route and by class of method and status only", () => {
  const metrics = new Metrics();
  const count = (of: Partial<RequestLabels>): void =>
    metrics.requests.count(metrics.requestSeries({ ...labels, route: "r", ...of }), 0.002, 0, 0);
  for (const backend of ["a", "b"]) for (const status of ["200", "204"]) count({ backend, status });
  for (const method of ["HEAD", "OPTIONS", "PUT", "DELETE", "POST", "unknown"]) count({ method });
  count({ status: "503", reason: "NoHealthyBackend" });
  count({ status: "0", reason: "ClientGone" });
  const counts = samples(render(metrics), "tracegate_request_duration_seconds_count");
  const line = (method: string, status: string, value: number): string =>
    `tracegate_request_duration_seconds_count{route="r",method_class="${method}",status_class="${status}"} ${value}`;
  assert.deepEqual(counts.sort(), [
    line("idempotent", "2xx", 2),
    line("other", "2xx", 2),
    line("safe", "2xx", 6),
    line("safe", "5xx", 1),
    line("safe", "unknown", 1),
  ]);
});

test("requests in progress are those of all threads", () => {
  const [first, second] = [new Metrics(), new Metrics()];
  first.inFlight.count += 2;
  second.inFlight.count++;
  first.inFlight.count--;
  const text = render(first, second);
  assert.match(text, /^# TYPE tracegate_requests_in_flight gauge$/m);
  assert.match(text, /^tracegate_requests_in_flight 2$/m);
});

test("an observation equal to a bound belongs to that bucket", () => {
  const histogram = new Metrics().histogram("upstream_connect_duration_seconds", "tls");
  histogram.observe(0.001);
  const { counts } = histogram.snapshot();
  assert.deepEqual([counts[0], counts.reduce((sum, count) => sum + count)], [1, 1]);
});

test("connections and upstream durations appear under their names, each with help and type once", () => {
  const metrics = new Metrics();
  const connection = metrics.connection({ bind: "bind/80", gateway: "", listener: "", protocol: "tcp" });
  connection.connections.count++;
  connection.received.count += 10;
  connection.sent.count += 20;
  metrics.histogram("upstream_connect_duration_seconds", "plaintext").observe(0.01);
  metrics.histogram("upstream_call_duration_seconds", "Primary", "Http").observe(0.01);
  const text = render(metrics);
  const of = `{bind="bind/80",gateway="unknown",listener="unknown",protocol="tcp"}`;
  assert.deepEqual(samples(text, "tracegate_downstream_received_bytes_total"), [
    `tracegate_downstream_received_bytes_total${of} 10`,
  ]);
  assert.match(text, /tracegate_upstream_connect_duration_seconds_count\{transport="plaintext"\} 1/);
  assert.match(text, /tracegate_upstream_call_duration_seconds_count\{kind="Primary",subtype="Http"\} 1/);
  assert.match(text, /# TYPE tracegate_downstream_sent_bytes_total counter\n/);
  const types = text.match(/# TYPE \S+/g) ?? [];
  assert.equal(new Set(types).size, types.length);
});

test("what is not counted by workers can be a histogram too, with or without labels", () => {
  const times = new Histogram([0.1, 1]);
  times.observe(0.1);
  times.observe(2);
  const labels = { controller: "status" };
  const series = [{ labels, value: times.snapshot() }];
  const text = renderMetrics({}, [histogram("runs", "Runs.", series), histogram("all", "All.", times.snapshot())]);
  assert.deepEqual(text.split("\n").slice(1, 7), [
    "# TYPE runs histogram",
    'runs_bucket{controller="status",le="0.1"} 1',
    'runs_bucket{controller="status",le="1"} 1',
    'runs_bucket{controller="status",le="+Inf"} 2',
    'runs_sum{controller="status"} 2.1',
    'runs_count{controller="status"} 2',
  ]);
  assert.match(text, /^all_count 2$/m);
});

test("metrics can be removed by full name, without prefix, and without unit", async () => {
  const metrics = new Metrics();
  metrics.requestSeries(labels);
  const extra = await processMetrics({ tag: "1.2.3", synchronized: true });
  const remove = ["tracegate_requests_total", "retries", "response_bytes", "request_duration", "config_synchronized"];
  const text = renderMetrics(metrics.snapshot(), extra, { remove });
  const left = Array.from(text.matchAll(/# TYPE (\S+)/g), (match) => match[1]);
  assert.ok(left.includes("tracegate_request_processing_seconds"));
  for (const name of ["requests_total", "retries_total", "response_bytes_total", "request_duration_seconds"])
    assert.ok(!left.includes(`tracegate_${name}`), name);
  assert.ok(!left.includes("tracegate_config_synchronized"));
});

test("build, configuration state and process metrics are present", async () => {
  const text = renderMetrics({}, await processMetrics({ tag: "1.2.3", synchronized: false }));
  assert.match(text, /^tracegate_build_info\{tag="1\.2\.3"\} 1$/m);
  assert.match(text, /^tracegate_config_synchronized 0$/m);
  assert.match(text, /^# TYPE process_cpu_seconds_total counter$/m);
  assert.match(text, /^process_resident_memory_bytes \d+$/m);
});

test("custom labels: a bounded number of series, the rest counted together", () => {
  const metrics = new Metrics(1);
  const count = (value: string): void => {
    const row = metrics.customSeries(labels, [value]) ?? metrics.otherSeries(labels);
    metrics.requests.count(row, 0, 0, 0);
  };
  for (let i = 0; i < MAX_CUSTOM_SERIES + 500; i++) count(`tenant-${i}`);
  count("tenant-0");
  metrics.requests.count(metrics.requestSeries(labels), 0, 0, 0);
  const text = renderMetrics(metrics.snapshot(), [], { custom: ["tenant"] });
  const totals = text.split("\n").filter((line) => line.startsWith("tracegate_requests_total{"));
  assert.equal(totals.length, MAX_CUSTOM_SERIES + 2);
  const value = (tenant: string): string | undefined =>
    totals
      .find((line) => line.includes(`,tenant="${tenant}"}`))
      ?.split(" ")
      .at(-1);
  assert.deepEqual(["tenant-0", "tenant-1", "other", "unknown"].map(value), ["2", "1", "500", "1"]);
  // Processing times are grouped by place only.
  assert.doesNotMatch(text, /^tracegate_request_processing_seconds.*tenant/m);
});
