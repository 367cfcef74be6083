import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../config/load.ts";
import { packIr, unpackIr } from "../ir/packed-ir.ts";
import { connectionOf } from "../upstream/destinations/destinations.ts";
import { ServiceIndex } from "../upstream/discovery/discovery.ts";
import { type EndpointStats, endpointKey, namedKey } from "../upstream/endpoints/endpoints.ts";
import { dumpIr, dumpSettings, type Live } from "./config-dump.ts";

const NOTHING_LIVE: Live = { ports: {}, endpoints: new Map(), calls: new Map(), locality: {}, hidden: new Set() };

function load(config: object) {
  const loaded = loadConfig({ kind: "text", text: JSON.stringify(config), name: "test" }, {});
  assert.ok(loaded.ok, JSON.stringify(loaded));
  return loaded;
}

/** The dump as a client of the admin API reads it. */
function dumpOf(config: object, live: Partial<Live> = {}) {
  const ir = unpackIr(packIr(load(config).ir));
  return JSON.parse(JSON.stringify(dumpIr(ir, { ...NOTHING_LIVE, ...live })));
}

const withRoute = (route: object, more: object = {}) => ({
  binds: [{ port: 3000, listeners: [{ name: "web", routes: [{ name: "api", ...route }] }] }],
  ...more,
});

const onlyRoute = (dump: ReturnType<typeof dumpOf>) => {
  const [listener] = Object.values<{ routes: Record<string, unknown> }>(dump.binds[0].listeners);
  return Object.values(listener?.routes ?? {})[0];
};

test("a bind has the port that it listens on, not the configured one", () => {
  const config = { binds: [{ port: 0, listeners: [{ routes: [{ name: "api" }] }] }] };
  const [bind] = dumpOf(config).binds;
  assert.match(dumpOf(config, { ports: { [bind.key]: 41234 } }).binds[0].address, /:41234$/);
});

test("the value that a route compares a secret header with is redacted", () => {
  const headers = [
    { name: "X-Tenant-Key", value: { exact: "s3cret" } },
    { name: "x-tier", value: { exact: "gold" } },
  ];
  const route = onlyRoute(dumpOf(withRoute({ matches: [{ headers }] }), { hidden: new Set(["x-tenant-key"]) }));
  const shown = JSON.stringify(route);
  assert.ok(!shown.includes("s3cret"));
  assert.ok(shown.includes("<redacted>"));
  assert.ok(shown.includes("gold"));
});

test("parts say where they were written, and policies in effect where that is elsewhere", () => {
  const dump = dumpOf(
    withRoute(
      { policies: { authorization: { rules: [{ deny: "request.path == '/no'" }] } }, backends: [{ backend: "/own" }] },
      {
        backends: [{ name: "own", host: "127.0.0.1:1", policies: { requestHeaderModifier: { remove: ["x-a"] } } }],
        policies: [
          {
            name: { namespace: "default", name: "all" },
            target: { gateway: { gatewayName: "default", gatewayNamespace: "default" } },
            policy: { authorization: { rules: [{ require: "request.path != '/out'" }] } },
          },
        ],
      },
    ),
  );
  const [listener] = Object.values<{ origin: string }>(dump.binds[0].listeners);
  const route = onlyRoute(dump) as { origin: string; policyOrigins: unknown; backends: { policyOrigins: unknown }[] };
  assert.equal(listener?.origin, "binds[0].listeners[0]");
  assert.equal(route.origin, "binds[0].listeners[0].routes[0]");
  assert.deepEqual([dump.backends[0].origin, dump.policies[0].origin], ["backends[0]", "policies[0]"]);
  const own = "binds[0].listeners[0].routes[0].policies.authorization.rules[0]";
  assert.deepEqual(route.policyOrigins, [{ authorization: ["policies[0].policy.authorization.rules[0]", own] }]);
  assert.deepEqual(route.backends[0]?.policyOrigins, [
    { requestHeaderModifier: ["backends[0].policies.requestHeaderModifier"] },
  ]);
});

test("a shadow policy has the name that was written, and a mark", () => {
  const shadow = { rules: [{ deny: "request.path == '/no'" }], shadow: true };
  const localRateLimit = [
    { maxTokens: 1, fillInterval: "1s" },
    { maxTokens: 2, fillInterval: "1s", shadow: true },
  ];
  const policies = { authorization: shadow, localRateLimit };
  const target = { gateway: { gatewayName: "default", gatewayNamespace: "default" } };
  const name = { namespace: "default", name: "all" };
  const dump = dumpOf(withRoute({ policies }, { policies: [{ name, target, policy: { localRateLimit } }] }));
  const shown = JSON.stringify(dump);
  assert.ok(!shown.includes("shadowAuthorization") && !shown.includes("shadowLocalRateLimit"), shown);
  const { inlinePolicies } = onlyRoute(dump) as { inlinePolicies: Record<string, { shadow?: true }>[] };
  assert.equal(inlinePolicies.find((each) => "authorization" in each)?.authorization?.shadow, true);
  const { traffic } = dump.policies[0].policy;
  assert.deepEqual(
    traffic.localRateLimit.map((each: { shadow?: true }) => each.shadow),
    [undefined, true],
  );
});

test("secrets of frontend policies are redacted, their durations are text", () => {
  const dump = dumpOf(
    withRoute(
      {},
      {
        frontendPolicies: {
          http: { http1IdleTimeout: "90s" },
          accessLog: { otlp: { host: "127.0.0.1:4317", policies: { backendAuth: { key: "s3cret" } } } },
        },
      },
    ),
  );
  const shown = JSON.stringify(dump.policies);
  assert.ok(!shown.includes("s3cret"), shown);
  assert.match(shown, /"http1IdleTimeout":"1m30s"/);
  assert.match(shown, /4317/);
});

/** The endpoints of the dump of a static backend whose endpoint has these statistics, and which had 7 calls. */
function endpointsWith(evictedMs: number | null) {
  const { stats, config, calls } = shopStats("127.0.0.1");
  const dump = dumpOf(config, { endpoints: new Map([[stats.key, { ...stats, evictedMs }]]), calls });
  return dump.backends[0].endpoints[0];
}

function shopStats(host: string) {
  const address = { type: "static", host, port: 9000 } as const;
  const key = endpointKey({ ...address, ...connectionOf({}, new ServiceIndex([], [])) }, 1);
  const pool = { active: 0, idle: 0, connecting: 0, waiting: 0, overflows: 0 };
  const calls = { health: 0.5, latency: 0.25, pending: 1, total: 99, consecutiveFailures: 2, timesEjected: 1 };
  const shared = { waiting: false, requests: false };
  const limits = { connections: 10_000, waiting: 4096, requests: null, shared };
  const own = { key, target: `${host}:9000`, evictedMs: null, overflows: 0, check: null };
  const stats: EndpointStats = { ...own, ...calls, pool, limits, countsAlone: false };
  const config = {
    ...withRoute({ backends: [{ backend: "/shop" }] }),
    backends: [{ name: "shop", host: `${host}:9000` }],
  };
  const [backend] = load(config).ir.backends;
  return { stats, config, calls: new Map([[backend?.key ?? "", 7]]) };
}

test("an endpoint shows its statistics, but the calls of this backend alone", () => {
  const { active, rejected } = endpointsWith(null);
  const { info } = active["127.0.0.1:9000"];
  assert.deepEqual(
    [info.health, info.requestLatency, info.totalRequests, info.consecutiveFailures, info.evictedUntil],
    [0.5, 0.25, 7, 2, null],
  );
  assert.deepEqual(rejected, {});
});

test("the addresses of a name show the calls of each, not those of the backend", () => {
  const { stats, config, calls } = shopStats("app.test");
  const at = (address: string, total: number): EndpointStats => {
    const of = namedKey({ host: "app.test", port: 9000 }, 1);
    const where = { at: [address], rank: 0, share: 1 };
    const resolved = { of, host: "app.test", target: "app.test:9000", address: where, weight: 0.5, omitted: 0 };
    return { ...stats, key: `${of} ${address}`, target: `${address}:9000`, total, resolved };
  };
  const endpoints = [at("10.0.0.1", 3), at("10.0.0.2", 4)];
  const dump = dumpOf(config, { endpoints: new Map(endpoints.map((each) => [each.key, each])), calls });
  const { active } = dump.backends[0].endpoints[0];
  assert.deepEqual([active["10.0.0.1:9000"].info.totalRequests, active["10.0.0.2:9000"].info.totalRequests], [3, 4]);
});

test("an evicted endpoint is rejected, with the rest of its eviction in seconds", () => {
  const { active, rejected } = endpointsWith(3300);
  assert.deepEqual(active, {});
  assert.equal(rejected["127.0.0.1:9000"].info.evictedUntil, "3.30s");
});

test("settings show addresses in the shapes of the reference, and durations as text", () => {
  const config = {
    adminAddr: "localhost:15001",
    statsAddr: "[::1]:15021",
    readinessAddr: "off",
    connectionTerminationDeadline: "90s",
  };
  const loaded = load({ config });
  const settings = dumpSettings(loaded.config, loaded.ir, { admin: ["127.0.0.1:15001"] });
  assert.deepEqual(settings.adminAddr, { Localhost: [true, 15001] });
  assert.deepEqual(settings.statsAddr, { SocketAddr: "[::1]:15021" });
  assert.equal(settings.readinessAddr, "Off");
  assert.equal(settings.terminationMaxDeadline, "1m30s");
  assert.deepEqual(settings.listening, { admin: ["127.0.0.1:15001"] });
});
