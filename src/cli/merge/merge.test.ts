import assert from "node:assert/strict";
import { test } from "node:test";
import type { Overview, RouteRow, RoutesAnswer, TrafficPoint } from "../../admin/plane/answers.ts";
import type { BackendView, EndpointView } from "../../admin/plane/backends.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import { mergeBackend } from "./backends.ts";
import { mergeLogLevels } from "./log-levels.ts";
import { mergeOverviews } from "./overview.ts";
import { mergeRecords } from "./records.ts";
import { mergeRoutes, routesQuery } from "./routes.ts";

const DAY = "2026-11-28T12:00";

function record(seconds: number): RequestRecord {
  const request = { method: "GET", host: "shop.example", path: "/", status: 503, reason: "Upstream" } as const;
  const time = `${DAY}:${String(seconds).padStart(2, "0")}.000Z`;
  return { time, worker: 0, number: 1, generation: 1, duration: 1, received: 0, sent: 0, ...request };
}

test("records are sorted by their end, and reach back completely only as far as those of each replica", () => {
  const { records, ...rest } = mergeRecords(
    [
      {
        pod: "a",
        answer: {
          records: [record(5), record(1)],
          found: 2,
          requests: 20,
          completeSince: `${DAY}:01.000Z`,
          until: `${DAY}:09.000Z`,
        },
      },
      {
        pod: "b",
        answer: {
          records: [record(3)],
          found: 1,
          requests: 10,
          completeSince: `${DAY}:02.000Z`,
          keptSince: DAY,
          until: `${DAY}:08.000Z`,
        },
      },
    ],
    2,
  );
  assert.deepEqual(
    records.map(({ pod, time }) => [pod, time.slice(17, 19)]),
    [
      ["a", "05"],
      ["b", "03"],
    ],
  );
  assert.deepEqual(rest, {
    found: 3,
    requests: 30,
    completeSince: `${DAY}:02.000Z`,
    keptSince: DAY,
    until: `${DAY}:08.000Z`,
  });
});

function overview(points: readonly TrafficPoint[], count: number, lastError: string | null): Overview {
  const status = {
    generation: 1,
    appliedAt: null,
    loadedAt: null,
    hash: "h",
    diskDiffers: false,
    lastError: lastError === null ? null : { at: DAY, message: lastError, diagnostics: [] },
    nextRetryAt: null,
    synchronized: lastError === null,
    restartRequired: [],
    source: "controller",
  };
  const group = { count, share: 1, status: 503, route: "shop/a", decidedBy: "the backend", example: record(count) };
  return {
    version: "1.0.0",
    status,
    pending: [],
    draining: lastError !== null,
    workers: [{ name: "worker-0", state: "serving", generation: 1, deaths: 0 }],
    listeners: [],
    traffic: { step: 10, points },
    failures: { since: DAY, found: count, requests: 10, groups: [group] },
  };
}

test("an overview has sums by time, the largest percentiles, groups counted together, and the worst status", () => {
  const at = (seconds: number): string => `${DAY}:${seconds}.000Z`;
  const first = overview([{ time: at(10), seconds: 10, requests: 8, errors: 1, p50: 2, p99: 9 }], 4, null);
  const points = [
    { time: at(10), seconds: 9, requests: 4, errors: 0, p50: 3, p99: 5 },
    { time: at(20), seconds: 4, requests: 0, errors: 0 },
  ];
  const merged = mergeOverviews([
    { pod: "a", answer: first },
    { pod: "b", answer: overview(points, 7, "no such backend") },
  ]);
  assert.deepEqual(merged.traffic.points, [
    { time: at(10), seconds: 10, requests: 12, errors: 1, p50: 3, p99: 9 },
    { time: at(20), seconds: 4, requests: 0, errors: 0 },
  ]);
  assert.deepEqual(
    merged.failures?.groups.map(({ count, share, example }) => [count, share, example.pod]),
    [[11, 11 / 20, "b"]],
  );
  assert.equal(merged.status.lastError?.message, "no such backend");
  assert.equal(merged.draining, false, "one of them still serves");
  assert.deepEqual(
    merged.workers.map(({ name }) => name),
    ["a worker-0", "b worker-0"],
  );
});

function row(key: string, requests: number): RouteRow {
  const place = { bind: "bind/80", listener: "web", position: 1, hostnames: [], matches: [], backends: [] };
  return { key, name: `shop/${key}`, ...place, requests, errors: 0, p99: requests };
}

function routes(...rows: readonly RouteRow[]): RoutesAnswer {
  return { generation: 1, since: DAY, total: rows.length, found: rows.length, routes: rows };
}

test("where traffic decides the order of routes, it is that of all replicas", () => {
  const query = new URLSearchParams({ sort: "requests", search: "shop", page: "2", limit: "1" });
  assert.equal(String(routesQuery(query)), "sort=requests&search=shop&page=1&limit=1000");
  const answers = [routes(row("a", 5), row("b", 4)), routes(row("b", 9), row("c", 6))];
  const shown = (words: Readonly<Record<string, string>>) =>
    mergeRoutes(answers, new URLSearchParams(words)).routes.map(({ key, requests, p99 }) => [key, requests, p99]);
  assert.deepEqual(shown({ sort: "requests", page: "1" }), [
    ["b", 13, 9],
    ["c", 6, 6],
    ["a", 5, 5],
  ]);
  assert.deepEqual(shown({ sort: "requests", page: "2", limit: "1" }), [["c", 6, 6]]);
  const static_ = new URLSearchParams({ page: "2", limit: "1" });
  assert.equal(String(routesQuery(static_)), "page=2&limit=1", "replicas agree on the page");
});

function endpoint(
  state: EndpointView["state"],
  requests: number,
  health: number,
  address = "10.0.0.7:80",
): EndpointView {
  const rest = { latency: 0, active: 1, consecutiveFailures: 0, weight: 1, changes: [] };
  const limits = { connections: 8, waiting: 8, requests: null, rejected: 1 };
  return { addresses: [address], state, requests, health, limits, ...rest };
}

function backend(each: EndpointView): BackendView {
  const endpoints = { total: 1, shown: [each] };
  return { key: "/a", name: "a", kind: "static", requests: 1, failing: 1, endpoints, routes: { total: 0, shown: [] } };
}

test("an endpoint has the worst state that a replica sees, and says which", () => {
  const { endpoints, requests } = mergeBackend([
    { pod: "a", answer: backend(endpoint("healthy", 30, 1)) },
    { pod: "b", answer: backend(endpoint("evicted", 10, 0)) },
  ]);
  assert.equal(requests, 2);
  assert.equal(endpoints.total, 1);
  const [{ state, stateAt, health, active, requests: own, limits } = endpoint("unused", 0, 0)] = endpoints.shown;
  assert.deepEqual(
    { state, stateAt, health, active, own },
    { state: "evicted", stateAt: ["b"], health: 0.75, active: 2, own: 40 },
  );
  assert.deepEqual(limits, { connections: 16, waiting: 16, requests: null, rejected: 2 });
});

test("log levels that differ between replicas are unknown, and their filters are all named", () => {
  const levels = (filter: string, level: "info" | "debug", own: boolean) => ({
    filters: [filter],
    level: "info" as const,
    modules: [{ name: "proxy", level, own }],
  });
  const [one, two] = [levels("info", "info", false), levels("info,proxy=debug", "debug", true)];
  assert.deepEqual(mergeLogLevels([one, one]), one);
  assert.deepEqual(mergeLogLevels([one, two]), {
    filters: ["info", "info,proxy=debug"],
    level: "info",
    modules: [{ name: "proxy", level: null, own: true }],
  });
});

test("endpoints that get no requests are counted though each replica has evicted another one, and come first", () => {
  const [one, two] = ["10.0.0.8:80", "10.0.0.9:80"];
  const at = (pod: string, down: string, ...up: readonly string[]) => {
    const shown = [endpoint("evicted", 1, 0, down), ...up.map((address) => endpoint("healthy", 1, 1, address))];
    return { pod, answer: { ...backend(endpoint("healthy", 0, 1)), endpoints: { total: 3, shown } } };
  };
  const { failing, endpoints } = mergeBackend([at("a", one, two, "10.0.0.7:80"), at("b", two, one)]);
  assert.equal(failing, 2);
  assert.equal(endpoints.total, 3);
  assert.deepEqual(
    endpoints.shown.map(({ addresses, state, stateAt }) => [addresses[0], state, stateAt]),
    [
      [one, "evicted", ["a"]],
      [two, "evicted", ["b"]],
      ["10.0.0.7:80", "healthy", undefined],
    ],
  );
  const many = { ...at("a", one).answer, failing: 40 };
  assert.equal(mergeBackend([at("b", two), { pod: "a", answer: many }]).failing, 40, "more than it shows");
});
