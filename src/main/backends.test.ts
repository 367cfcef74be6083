import assert from "node:assert/strict";
import { test } from "node:test";
import type { BackendView, EndpointView } from "../admin/plane/backends.ts";
import { loadConfig } from "../config/load.ts";
import { HealthHistory } from "../telemetry/health-history.ts";
import { connectionOf } from "../upstream/destinations/destinations.ts";
import { ServiceIndex } from "../upstream/discovery/discovery.ts";
import { type EndpointStats, endpointKey, namedKey } from "../upstream/endpoints/endpoints.ts";
import { BackendViews } from "./backends.ts";

const SERVICE = "service/shop/cart";
const keyWith = (policies: Parameters<typeof connectionOf>[0]): string =>
  endpointKey({ host: "127.0.0.1", port: 9000, ...connectionOf(policies, new ServiceIndex([], [])) }, 1);
const KEY = keyWith({});
const HEALTHY: EndpointStats = {
  key: KEY,
  target: "127.0.0.1:9000",
  health: 1,
  latency: 0,
  pending: 0,
  total: 99,
  consecutiveFailures: 0,
  timesEjected: 0,
  evictedMs: null,
  overflows: 2,
  check: null,
  pool: { active: 0, idle: 0, connecting: 0, waiting: 0, overflows: 3 },
  limits: { connections: 10, waiting: 5, requests: null, shared: { waiting: false, requests: false } },
  countsAlone: false,
};

/** A static backend that two routes use, one of them with connections of its own, and a service with so many workloads, of which the last is not ready, and so many routes. */
function views(size: number, stats: Partial<EndpointStats> = {}, history = new HealthHistory()): BackendViews {
  const service = { name: "shop/cart", port: 80 };
  const routes = Array.from({ length: size }, (_, i) => ({ name: `r${i}`, backends: [{ service }] }));
  const shop = (policies: object): object => ({ backends: [{ backend: "/shop", policies }] });
  const workloads = Array.from({ length: size }, (_, i) => ({
    uid: `w${i}`,
    name: `w${i}`,
    namespace: "shop",
    workloadIps: [`10.0.${i >> 8}.${i & 255}`],
    status: i === size - 1 ? "unhealthy" : "healthy",
    services: { "shop/cart": { 80: 8080 } },
  }));
  const text = JSON.stringify({
    binds: [
      {
        port: 80,
        listeners: [
          {
            name: "web",
            routes: [...routes, { name: "a", ...shop({}) }, { name: "b", ...shop({ tcp: { connectTimeout: "1s" } }) }],
          },
        ],
      },
    ],
    backends: [{ name: "shop", host: "127.0.0.1:9000" }],
    services: [{ name: "cart", namespace: "shop", hostname: "cart", ports: { 80: 80 } }],
    workloads,
  });
  const loaded = loadConfig({ kind: "text", text, name: "test" }, {});
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const { ir } = loaded;
  const all = ir.binds[0]?.listeners.flatMap((listener) => listener.routes) ?? [];
  // As of a route that two listeners have.
  const other = ir.binds.map((bind) => ({
    ...bind,
    key: "bind/81",
    listeners: bind.listeners.map((listener) => ({ ...listener, routes: all.slice(0, 1) })),
  }));
  const [first, last] = [all[0], all.at(-1)].map((route) => route?.backends[0]);
  const ownKey = keyWith(last?.policies ?? {});
  assert.notEqual(ownKey, KEY);
  const own = { ...HEALTHY, key: ownKey, total: 1, overflows: 0, pool: { ...HEALTHY.pool, overflows: 0 } };
  return new BackendViews(
    { ...ir, binds: [...ir.binds, ...other] },
    {
      endpoints: new Map([
        [KEY, { ...HEALTHY, ...stats }],
        [ownKey, own],
      ]),
      calls: new Map([
        ["/shop", 7],
        [first?.key ?? "", 5],
      ]),
      locality: {},
      history,
      locate: () => undefined,
      generation: 3,
    },
  );
}

const sizes = ({ endpoints, routes }: BackendView): readonly number[] =>
  [endpoints.shown, endpoints.total, routes.shown, routes.total].map((each) =>
    typeof each === "number" ? each : each.length,
  );

test("a list shows few endpoints and routes of a backend, those without requests first; alone, it shows many", () => {
  const all = views(1100);
  const shown = all.list({ find: "cart", limit: 10 }).backends.shown[0];
  assert.ok(shown);
  assert.deepEqual([sizes(shown), shown.failing, shown.requests], [[32, 1100, 16, 1101], 1, 5]);
  assert.equal(shown.endpoints.shown[0]?.state, "notReady");
  const one = all.one(SERVICE);
  assert.ok(one);
  assert.deepEqual(sizes(one), [1100, 1100, 1000, 1101]);
  assert.equal(all.one("/other"), undefined);
});

test("named backends and services are listed, found by each of key, name and address, or by failing endpoints", () => {
  const all = views(2);
  const keys = (query: { find?: string; failing?: boolean }, limit = 10): string[] =>
    all.list({ ...query, limit }).backends.shown.map(({ key }) => key);
  assert.deepEqual(keys({}), ["/shop", SERVICE]);
  assert.deepEqual(keys({}, 1), ["/shop"]);
  assert.deepEqual(keys({ find: "127.0.0.1:9" }), ["/shop"]);
  assert.deepEqual(keys({ find: "10.0.0.1:8080" }), [SERVICE]);
  assert.deepEqual(keys({ find: "service/" }), [SERVICE]);
  assert.deepEqual(keys({ failing: true }), [SERVICE]);
  assert.deepEqual(keys({ failing: true, find: "127.0.0.1" }), []);
  assert.deepEqual([all.list({ limit: 1 }).generation, all.list({ limit: 1 }).backends.total], [3, 2]);
});

test("the state of an endpoint: its active check goes before its eviction, and a check that has not ended is pending", () => {
  const check = { healthy: undefined, reason: "", passed: 0, failed: 0 };
  const failed = { ...check, healthy: false, reason: "status 503" };
  const states: readonly [EndpointView["state"], number, Partial<EndpointStats>][] = [
    ["healthy", 0, {}],
    ["healthy", 0, { check: { ...check, healthy: true } }],
    ["pending", 0, { check }],
    ["evicted", 1, { evictedMs: 1000 }],
    ["evicted", 1, { evictedMs: 1000, check }],
    ["unhealthy", 1, { check: failed }],
    ["unhealthy", 1, { evictedMs: 1000, check: failed }],
  ];
  for (const [state, failing, stats] of states) {
    const view = views(1, stats).one("/shop");
    assert.deepEqual([view?.endpoints.shown[0]?.state, view?.failing], [state, failing], JSON.stringify(stats));
  }
  const [notReady, unused] = views(2).one(SERVICE)?.endpoints.shown ?? [];
  assert.deepEqual([notReady?.state, unused?.state, unused?.pool], ["notReady", "unused", undefined]);
});

test("an endpoint has the cause of its last eviction, what its limits rejected, and requests of all backends", () => {
  const history = new HealthHistory();
  for (const consecutiveFailures of [2, 5])
    history.add(KEY, {
      at: consecutiveFailures,
      state: "evicted",
      forMs: 1,
      cause: { consecutiveFailures, health: 0.5 },
    });
  history.add(KEY, { at: 9, state: "healthy" });
  const view = views(1, { evictedMs: 60_000 }, history).one("/shop");
  const [endpoint] = view?.endpoints.shown ?? [];
  assert.deepEqual(endpoint?.evicted?.cause, { consecutiveFailures: 5, health: 0.5 });
  assert.ok((endpoint?.evicted?.until ?? 0) > Date.now());
  assert.deepEqual(endpoint?.limits, { connections: 20, waiting: 10, requests: null, rejected: 5 });
  assert.equal(endpoint?.perWorker, undefined);
  assert.equal(views(1, { countsAlone: true }).one("/shop")?.endpoints.shown[0]?.perWorker, true);
  assert.deepEqual(
    [endpoint?.requests, view?.requests, view?.routes.shown.map(({ name }) => name)],
    [100, 7, ["default/a", "default/b"]],
  );
  assert.equal(views(1, {}, history).one("/shop")?.endpoints.shown[0]?.evicted, undefined);
});

test("a backend with a name: an endpoint for each address; the name itself while none is known", () => {
  const config = {
    binds: [{ port: 80, listeners: [{ routes: [{ backends: [{ backend: "/shop" }, { backend: "/pool" }] }] }] }],
    backends: [
      { name: "shop", host: "shop.test:9000" },
      { name: "pool", endpoints: [{ host: "a.test:80", weight: 6 }, { host: "10.0.0.9:80" }] },
    ],
  };
  const loaded = loadConfig({ kind: "text", text: JSON.stringify(config), name: "test" }, {});
  assert.ok(loaded.ok);
  const shop = { host: "shop.test", port: 9000 };
  const whole: EndpointStats = {
    ...HEALTHY,
    key: endpointKey(shop, 1),
    target: "shop.test:9000",
    name: { addresses: [], ageMs: null, error: "not found" },
  };
  const at = (of: string, host: string, address: string, weight: number, more = {}): EndpointStats => {
    const resolved = {
      of,
      host,
      target: `${host}:80`,
      address: { at: [address], rank: 0, share: 1 },
      weight,
      omitted: 0,
    };
    return { ...HEALTHY, key: `${of} ${address}`, target: `${address}:80`, resolved: { ...resolved, ...more } };
  };
  const view = (...stats: readonly EndpointStats[]): BackendViews =>
    new BackendViews(loaded.ir, {
      endpoints: new Map(stats.map((each) => [each.key, each])),
      calls: new Map(),
      locality: {},
      history: new HealthHistory(),
      locate: () => undefined,
      generation: 1,
    });
  const shown = (views: BackendViews, key: string): unknown =>
    views.one(key)?.endpoints.shown.map(({ addresses, weight, name }) => [addresses.join(), weight, name]);
  assert.deepEqual(shown(view(whole), "/shop"), [["shop.test:9000", 1, { addresses: [], error: "not found" }]]);
  const [unresolved] = view(whole).list({ failing: true, limit: 9 }).backends.shown;
  assert.deepEqual(
    [unresolved?.key, unresolved?.failing, unresolved?.endpoints.shown[0]?.state],
    ["/shop", 1, "unresolved"],
  );
  const of = namedKey(shop, 1);
  const found = { addresses: ["10.0.0.1"], ageMs: null };
  const omitted = { omitted: 3, address: { at: ["10.0.0.2"], rank: 1, share: 1 } };
  const both = view(
    whole,
    { ...at(of, "shop.test", "10.0.0.1", 0.5), name: found },
    at(of, "shop.test", "10.0.0.2", 0.5, omitted),
  );
  assert.deepEqual(shown(both, "/shop"), [
    ["10.0.0.1:9000", 0.5, { host: "shop.test", addresses: ["10.0.0.1"] }],
    ["10.0.0.2:9000", 0.5, { host: "shop.test", addresses: ["10.0.0.2"], rank: 1, omitted: 3 }],
  ]);
  assert.equal(both.list({ find: "10.0.0.2", limit: 9 }).backends.total, 1);
  const pool = namedKey({ host: "a.test", port: 80 }, 6, "/pool a.test:80");
  assert.deepEqual(shown(view(at(pool, "a.test", "10.0.0.1", 3), at(pool, "a.test", "10.0.0.2", 3)), "/pool"), [
    ["10.0.0.1:80", 3, { host: "a.test", addresses: ["10.0.0.1"] }],
    ["10.0.0.2:80", 3, { host: "a.test", addresses: ["10.0.0.2"] }],
    ["10.0.0.9:80", 1, undefined],
  ]);
});
