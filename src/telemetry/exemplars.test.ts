import assert from "node:assert/strict";
import { test } from "node:test";
import { Exemplars, type TimedRequest } from "./exemplars.ts";
import { Metrics } from "./metrics.ts";
import { counter, renderMetrics } from "./prometheus.ts";

const REQUEST: TimedRequest = {
  route: "default/shop",
  method: "GET",
  status: 503,
  endedAt: 1_767_225_600_250,
  duration: 40,
  processing: undefined,
  ids: { record: "0-1", trace: undefined, request: undefined },
};
const LABELS = {
  backend: "b",
  protocol: "http",
  method: "GET",
  status: "503",
  reason: "Upstream",
  bind: "bind/80",
  gateway: "default/default",
  listener: "web",
  route: "default/shop",
  route_rule: "",
};

/** The lines of OpenMetrics with exemplars, after requests to one route of which some are kept. */
function exemplarsOf(kept: readonly Partial<TimedRequest>[]): string[] {
  const metrics = new Metrics();
  const series = metrics.requestSeries(LABELS);
  metrics.requests.count(series, 0.04, 0, 0);
  metrics.requests.countProcessing(series, 0.0001, 0.002);
  const exemplars = new Exemplars();
  for (const each of kept) exemplars.add({ ...REQUEST, ...each });
  const text = renderMetrics(metrics.snapshot(), [], { format: "openMetrics", exemplars });
  return text.split("\n").filter((line) => line.includes(" # "));
}

test("the newest kept request stands for its bucket", () => {
  const kept = ["0-1", "1-9", "0-2"].map((record, i) => ({
    endedAt: REQUEST.endedAt + (i === 1 ? 2000 : 1000),
    ids: { record, trace: "4bf92f3577b34da6a3ce929d0e0e4736", request: `id-${i}` },
  }));
  assert.deepEqual(exemplarsOf(kept), [
    'tracegate_request_duration_seconds_bucket{route="default/shop",method_class="safe",status_class="5xx",le="0.05"} 1 ' +
      '# {record_id="1-9",trace_id="4bf92f3577b34da6a3ce929d0e0e4736",request_id="id-1"} 0.04 1767225602.250',
  ]);
});

test("each bucket has its own, also of the times before and after the backend", () => {
  const lines = exemplarsOf([{}, { duration: 90_000, processing: { request: 0.04, response: 300 } }]);
  const shown = lines.map((line) =>
    /^tracegate_(\w+)_bucket.*le="([^"]+)"\} \d+ # \{record_id="0-1"\} (\S+)/.exec(line)?.slice(1),
  );
  assert.deepEqual(shown, [
    ["request_duration_seconds", "0.05", "0.04"],
    ["request_duration_seconds", "+Inf", "90"],
    ["request_processing_seconds", "0.00005", "0.00004"],
    ["response_processing_seconds", "+Inf", "0.3"],
  ]);
});

test("requests of other series change nothing", () => {
  assert.deepEqual(exemplarsOf([{ route: "default/other" }, { method: "POST" }, { status: 200 }, { status: 0 }]), []);
});

test("an id that a client has made too long is left out, and quotes in one end nothing", () => {
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const [long = ""] = exemplarsOf([{ ids: { record: "0-1", trace, request: "x".repeat(200) } }]);
  assert.match(long, /# \{record_id="0-1",trace_id="4bf92f3577b34da6a3ce929d0e0e4736"\} /);
  const [quoted = ""] = exemplarsOf([{ ids: { record: "0-1", trace: undefined, request: 'a"} 1 # {b="' } }]);
  assert.match(quoted, /# \{record_id="0-1",request_id="a\\"\} 1 # \{b=\\""\} 0\.04 /);
});

test("OpenMetrics names counters without their suffix, writes bounds as floating-point numbers, and ends", () => {
  const metrics = new Metrics();
  metrics.requests.count(metrics.requestSeries(LABELS), 0.04, 0, 0);
  const extra = [counter("runs_total", 'Runs of a "loop".', 3)];
  const lines = renderMetrics(metrics.snapshot(), extra, { format: "openMetrics" }).split("\n");
  assert.deepEqual(lines.slice(0, 3), ['# HELP runs Runs of a \\"loop\\".', "# TYPE runs counter", "runs_total 3"]);
  assert.ok(lines.includes("# TYPE tracegate_requests counter"));
  const bounds = lines.flatMap(
    (line) => /^tracegate_request_duration_seconds_bucket.*le="([^"]+)"/.exec(line)?.[1] ?? [],
  );
  assert.deepEqual(bounds.slice(-6), ["1.0", "2.5", "5.0", "10.0", "30.0", "80.0", "+Inf"].slice(-6));
  assert.deepEqual(lines.slice(-2), ["# EOF", ""]);
});

test("the text format of Prometheus has no exemplars", () => {
  const metrics = new Metrics();
  metrics.requests.count(metrics.requestSeries(LABELS), 0.04, 0, 0);
  const exemplars = new Exemplars();
  exemplars.add(REQUEST);
  assert.doesNotMatch(renderMetrics(metrics.snapshot(), [], { exemplars }), / # |EOF/);
});
