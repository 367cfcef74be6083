import assert from "node:assert/strict";
import { test } from "node:test";
import { CounterMemory, Metrics, type RequestLabels } from "../telemetry/metrics.ts";
import { TrafficHistory } from "./traffic-history.ts";

const START = Date.parse("2026-11-28T12:00:00.000Z");
const LABELS: RequestLabels = {
  backend: "b",
  protocol: "http",
  method: "GET",
  status: "200",
  reason: "Upstream",
  bind: "bind/80",
  gateway: "default/default",
  listener: "web",
  route: "default/api",
  route_rule: "unknown",
};

/** A history from `START` on, and a way to count requests with some labels that took so many seconds. */
function history() {
  const counted = new CounterMemory();
  const metrics = new Metrics(0, (notice) => counted.add(notice));
  const count = (labels: Partial<RequestLabels>, seconds = 0.0005): void =>
    metrics.requests.count(metrics.requestSeries({ ...LABELS, ...labels }), seconds, 0, 0);
  return { history: new TrafficHistory(counted, START, 0), count, metrics };
}

const at = (seconds: number): [now: number, clock: number] => [START + seconds * 1000, seconds * 1000];

test("a point has the requests since the one before, and the last one those that are not in a point yet", () => {
  const { history: traffic, count } = history();
  count({});
  count({}, 0.2);
  traffic.add(...at(10));
  count({});
  const [first, last] = traffic.points(...at(14));
  assert.deepEqual(first, { time: "2026-11-28T12:00:10.000Z", seconds: 10, requests: 2, errors: 0, p50: 1, p99: 247 });
  assert.deepEqual([last?.time, last?.seconds, last?.requests], ["2026-11-28T12:00:14.000Z", 4, 1]);
  traffic.add(...at(20));
  assert.deepEqual(
    traffic.points(...at(20)).map(({ requests }) => requests),
    [2, 1, 0],
  );
});

test("errors are failures and rejections: not what a backend refuses, nor redirects", () => {
  const { history: traffic, count } = history();
  for (const labels of [
    { status: "404" },
    { status: "302", reason: "DirectResponse" },
    { status: "403", reason: "DirectResponse" },
    { status: "302", reason: "Oidc" },
  ])
    count(labels);
  assert.equal(traffic.points(...at(1))[0]?.errors, 0);
  for (const labels of [
    { status: "500" },
    { status: "403", reason: "Authorization" },
    { status: "0", reason: "ClientGone" },
    { status: "503", reason: "UpstreamFailure" },
  ])
    count(labels);
  assert.equal(traffic.points(...at(1))[0]?.errors, 4);
});

test("calls of gRPC that a server failed are errors, whatever their HTTP status", () => {
  const { metrics, history: traffic, count } = history();
  const call = { method: "POST", status: "200" };
  count(call);
  count(call);
  metrics.requests.countFailedCall(metrics.requestSeries({ ...LABELS, ...call }));
  const [point] = traffic.points(...at(1));
  assert.deepEqual([point?.requests, point?.errors], [2, 1]);
});

test("idle time gives a point without requests and latency; time without a reading gives no point", () => {
  const { history: traffic, count } = history();
  traffic.add(...at(10));
  for (let i = 0; i < 6; i++) count({});
  traffic.add(...at(70));
  assert.deepEqual(
    traffic.points(...at(70)).map(({ time, seconds, requests, p50 }) => [time.slice(17, 19), seconds, requests, p50]),
    [
      ["10", 10, 0, undefined],
      ["10", 60, 6, 0.5],
      ["10", 0, 0, undefined],
    ],
  );
});

test("the points of 15 minutes are kept, and a clock that is set back leaves none of its future", () => {
  const { history: traffic } = history();
  for (let i = 1; i <= 200; i++) traffic.add(...at(10 * i));
  const points = traffic.points(...at(2000));
  assert.deepEqual([points.length, points[0]?.time], [92, new Date(START + 1_100_000).toISOString()]);
  const [now] = at(1500);
  traffic.add(now, 2_010_000);
  const times = traffic.points(now + 1, 2_010_001).map(({ time }) => time);
  assert.deepEqual(times, times.toSorted());
  assert.deepEqual(times.at(-2), new Date(now).toISOString());
});
