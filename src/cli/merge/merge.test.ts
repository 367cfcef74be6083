import assert from "node:assert/strict";
import { test } from "node:test";
import type { Overview, PlacedRoute, RouteRow, RoutesAnswer, TrafficPoint } from "../../admin/plane/answers.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import { newestExplanation } from "./explanation.ts";
import { mergeLogLevels } from "./log-levels.ts";
import { mergeOverviews, mergeStatus } from "./overview.ts";
import { mergeRecords } from "./records.ts";
import { mergeRoute, mergeRoutes, routesQuery } from "./routes.ts";

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
    merged.workers.map(({ pod, name }) => [pod, name]),
    [
      ["a", "worker-0"],
      ["b", "worker-0"],
    ],
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

test("a route has what replicas know at each of its places", () => {
  const placed = (listener: string, requests: number, latest?: string): PlacedRoute => ({
    ...row("a", requests),
    listener,
    ...(latest !== undefined && { latest }),
    policies: { route: [] },
    backendPolicies: [],
  });
  const view = (since: string, total: number, ...shown: readonly PlacedRoute[]) => ({
    generation: 1,
    since,
    places: { total, shown },
  });
  const { since, places } = mergeRoute([
    view(`${DAY}:05.000Z`, 1, placed("web", 1, `${DAY}:30.000Z`)),
    view(`${DAY}:02.000Z`, 2, placed("web", 2, `${DAY}:20.000Z`), placed("secure", 4)),
  ]);
  assert.equal(since, `${DAY}:02.000Z`);
  assert.equal(places.total, 2);
  assert.deepEqual(
    places.shown.map(({ listener, requests, latest }) => [listener, requests, latest]),
    [
      ["web", 3, `${DAY}:30.000Z`],
      ["secure", 4, undefined],
    ],
  );
  const apart = [view(DAY, 1, placed("web", 1)), view(DAY, 1, placed("secure", 1))];
  assert.equal(mergeRoute(apart).places.total, 2, "replicas whose configurations differ");
});

test("routes are sorted by the time of the latest request at any replica", () => {
  const at = (key: string, latest: string): RouteRow => ({ ...row(key, 1), latest });
  const answers = [
    routes(at("a", `${DAY}:30.000Z`), at("b", `${DAY}:10.000Z`)),
    routes(at("a", `${DAY}:20.000Z`), at("b", `${DAY}:40.000Z`), row("c", 0)),
  ];
  assert.deepEqual(
    mergeRoutes(answers, new URLSearchParams({ sort: "latest" })).routes.map(({ key, latest }) => [key, latest]),
    [
      ["b", `${DAY}:40.000Z`],
      ["a", `${DAY}:30.000Z`],
      ["c", undefined],
    ],
  );
});

test("the status that needs attention first: an error, then a replica that is behind", () => {
  const { status } = overview([], 0, null);
  const behind = { ...status, generation: 2, synchronized: false };
  const failed = { ...status, generation: 3, lastError: { at: DAY, message: "refused", diagnostics: [] } };
  assert.equal(mergeStatus([status, behind, failed]).generation, 3);
  assert.equal(mergeStatus([status, behind]).generation, 2);
  assert.equal(mergeStatus([status, status]).generation, 1);
});

test("failures are those since the first of the replicas has counted; none if no replica records requests", () => {
  const at = (since: string, count: number): Overview => {
    const { failures, ...rest } = overview([], count, null);
    return { ...rest, failures: failures && { ...failures, since } };
  };
  const merged = mergeOverviews([
    { pod: "a", answer: at(`${DAY}:05.000Z`, 1) },
    { pod: "b", answer: at(`${DAY}:02.000Z`, 1) },
    { pod: "c", answer: { ...overview([], 1, null), failures: null } },
  ]);
  assert.deepEqual([merged.failures?.since, merged.failures?.found], [`${DAY}:02.000Z`, 2]);
  assert.equal(mergeOverviews([{ pod: "c", answer: { ...overview([], 1, null), failures: null } }]).failures, null);
});

test("the newest request with an id is explained, wherever it was, and all of them are counted", () => {
  const explanation = { outcomes: [], generation: 1 };
  const at = (pod: string, seconds?: number, alike?: number) => ({
    pod,
    answer: {
      ...explanation,
      ...(seconds !== undefined && { record: record(seconds) }),
      ...(alike !== undefined && { alike }),
    },
  });
  const newest = newestExplanation([at("a", 1), at("b", 3, 2), at("c", 2), at("d")]);
  assert.deepEqual([newest?.record.pod, newest?.record.time, newest?.alike], ["b", `${DAY}:03.000Z`, 4]);
  assert.equal(newestExplanation([at("a", 1), at("d")])?.alike, undefined);
  assert.equal(newestExplanation([at("d")]), undefined);
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
