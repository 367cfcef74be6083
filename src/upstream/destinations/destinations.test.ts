import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../base/durations.ts";
import { Sweeper } from "../../base/sweeper.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { type LoadBalancer, type Service, ServiceIndex, type Workload } from "../discovery/discovery.ts";
import type { Locality } from "../discovery/locality.ts";
import { Endpoints } from "../endpoints/endpoints.ts";
import { SharedLoads } from "../loads/shared-loads.ts";
import { Pools } from "../pools/pools.ts";
import type { NamedAddress } from "../resolve/named-addresses.ts";
import { Resolver } from "../resolve/resolver.ts";
import type { Target } from "../settings/target.ts";
import { Destinations } from "./destinations.ts";

const SERVICE: Service = { name: "api", namespace: "ns", hostname: "api.test", vips: [], ports: { "80": 8080 } };
const KEY = "ns/api.test";
const AT_80: Target = { type: "service", key: KEY, port: 80 };

function workload(uid: string, more: Partial<Workload> = {}): Workload {
  const at = { name: uid, namespace: "ns", workloadIps: [`10.0.0.${uid}`] };
  return { uid, ...at, status: "healthy", capacity: 1, services: { [KEY]: {} }, ...more };
}

function destinations(
  services: readonly Service[],
  workloads: readonly Workload[],
  random = () => 0,
  loads?: SharedLoads,
  addresses: Readonly<Record<string, readonly NamedAddress[]>> = {},
  locality: Locality = {},
) {
  const sweeper = new Sweeper();
  const settings = { connectTimeout: ms(10_000), idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
  const endpoints = new Endpoints(
    new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, sweeper),
    undefined,
    undefined,
    loads,
    {
      follow: ({ host }, found) => ({
        use: () => found(addresses[host] ?? []),
        close() {},
      }),
    },
  );
  const all = new Destinations(endpoints, new ServiceIndex(services, workloads), locality, random);
  return {
    all,
    endpoints,
    names: (target: Target, policies = {}): (string | undefined)[] | undefined =>
      all.find(target, policies).balancer?.endpoints.map(({ pool }) => pool.name),
    [Symbol.dispose]: () => {
      endpoints.release(all.held);
      assert.deepEqual(endpoints.stats(), [], "all are released");
      sweeper.close();
    },
  };
}

test("a service: each address of its workloads, at the port of the workload or else of the service", () => {
  const own = workload("2", { services: { [KEY]: { "80": 9090 } }, workloadIps: ["10.0.0.2", "::2"] });
  const named = workload("3", { workloadIps: [], hostname: "three.test" });
  const other = workload("4", { services: { "ns/other.test": {} } });
  using made = destinations([SERVICE], [workload("1"), own, named, other]);
  assert.deepEqual(made.names(AT_80), ["10.0.0.1:8080", "10.0.0.2:9090", "[::2]:9090", "three.test:8080"]);
  assert.deepEqual(made.names({ ...AT_80, port: 81 }), []);
  assert.deepEqual(made.names({ ...AT_80, key: "ns/unknown" }), []);
});

test("references that connect in the same way share a balancer; others share endpoints where possible", () => {
  using made = destinations([SERVICE], [workload("1")]);
  const find = (policies: Parameters<Destinations["find"]>[1]) => made.all.find(AT_80, policies).balancer;
  assert.equal(find({}), find({}));
  assert.notEqual(find({}), find({ tcp: { connectTimeout: ms(5) } }));
  const affine = find({ sessionAffinity: { source: '"x"' } });
  assert.notEqual(find({}), affine);
  assert.equal(find({})?.endpoints[0], affine?.endpoints[0]);
  const single: Target = { type: "static", host: "10.0.0.9", port: 1 };
  assert.equal(made.all.find(single, {}), made.all.find({ ...single }, {}));
});

test("the algorithm is that of the service", () => {
  const loadBalancer = { routingPreferences: [], mode: "Standard", healthPolicy: "OnlyHealthy" } as const;
  const turns = (algorithm: "RoundRobin" | undefined): (string | undefined)[] => {
    const service = { ...SERVICE, loadBalancer: { ...loadBalancer, ...(algorithm && { algorithm }) } };
    using made = destinations([service], [workload("1"), workload("2")]);
    const { balancer } = made.all.find(AT_80, {});
    return [balancer?.choose()?.pool.name, balancer?.choose()?.pool.name];
  };
  assert.deepEqual(turns("RoundRobin"), ["10.0.0.1:8080", "10.0.0.2:8080"]);
  assert.deepEqual(turns(undefined), ["10.0.0.1:8080", "10.0.0.1:8080"], "random draws, which are the first here");
});

test("a new endpoint of a service or pool starts slowly where the service says so", () => {
  const loadBalancer = { routingPreferences: [], mode: "Standard", healthPolicy: "OnlyHealthy" } as const;
  for (const [slowStart, expected] of [
    [3_600_000, "10.0.0.2:8080"],
    [undefined, "10.0.0.1:8080"],
  ] as const) {
    using made = destinations(
      [{ ...SERVICE, loadBalancer: { ...loadBalancer, slowStart } }],
      [workload("1"), workload("2")],
      () => 0.4,
    );
    const { balancer } = made.all.find(AT_80, {});
    Object.assign(balancer?.endpoints[1] ?? {}, { startedAt: -1e9 });
    assert.equal(balancer?.choose()?.pool.name, expected);
  }
});

test("threads share the loads that an algorithm looks at", () => {
  const loadBalancer = { routingPreferences: [], mode: "Standard", healthPolicy: "OnlyHealthy" } as const;
  const shares = (algorithm: LoadBalancer["algorithm"], ...uids: string[]): boolean[] | undefined => {
    const service = { ...SERVICE, loadBalancer: { ...loadBalancer, algorithm } };
    const loads = new SharedLoads(SharedLoads.memoryFor(2));
    using made = destinations(
      [service],
      uids.map((uid) => workload(uid)),
      undefined,
      loads,
    );
    return made.all.find(AT_80, {}).balancer?.endpoints.map(({ sharesLoad }) => sharesLoad);
  };
  assert.deepEqual(shares(undefined, "1", "2"), [true, true]);
  assert.deepEqual(shares("LeastRequests", "1", "2"), [true, true]);
  assert.deepEqual(shares("LeastRequests", "1"), [false]);
  assert.deepEqual(shares("RoundRobin", "1", "2"), [false, false]);
});

test("a proxy may be a service: its healthy workloads", () => {
  using made = destinations(
    [SERVICE],
    [workload("1"), workload("2", { status: "unhealthy" }), workload("3", { capacity: 0 })],
  );
  const tunnel = { backendTunnel: { proxy: AT_80 } };
  const { balancer } = made.all.find({ type: "static", host: "a.test", port: 443 }, tunnel);
  const [endpoint] = balancer?.endpoints ?? [];
  assert.deepEqual(endpoint?.pool.target.tunnel?.proxies, [{ host: "10.0.0.1", port: 8080, discovered: true }]);
});

test("the addresses of names: endpoints in place of the name, in the order of their ranks", () => {
  const at = (address: string, rank = 0): NamedAddress => ({ at: [address], rank, share: 1 });
  const addresses = {
    "a.test": [at("10.0.1.1"), at("10.0.1.2"), at("fd00::1", 1)],
    "b.test": [at("10.0.2.1"), at("10.0.2.2")],
  };
  const service: Service = {
    ...SERVICE,
    loadBalancer: { routingPreferences: [], mode: "Standard", healthPolicy: "OnlyHealthy", algorithm: "RoundRobin" },
  };
  const endpoint = (host: string, capacity: number, backup = {}): Workload =>
    workload(host, { workloadIps: [], capacity, address: { host, port: 80 }, ...backup });
  const workloads = [endpoint("10.0.0.9", 2), endpoint("a.test", 2), endpoint("b.test", 1, { backup: true })];
  using made = destinations([service], workloads, () => 0, undefined, addresses);
  const { balancer } = made.all.find(AT_80, {});
  const shown = (): string | undefined =>
    balancer?.endpoints.map((each) => `${each.pool.name} ${each.capacity}`).join();
  assert.equal(shown(), "10.0.0.9:80 2,a.test:80 2,b.test:80 1");
  const chosen = Array.from({ length: 8 }, () => balancer?.choose()?.pool.name).slice(4);
  assert.equal(shown(), "10.0.0.9:80 2,10.0.1.1:80 1,10.0.1.2:80 1,[fd00::1]:80 2,10.0.2.1:80 0.5,10.0.2.2:80 0.5");
  assert.deepEqual(chosen.sort(), ["10.0.0.9:80", "10.0.0.9:80", "10.0.1.1:80", "10.0.1.2:80"]);
  assert.equal(balancer?.find("10.0.2.2:80")?.capacity, 0.5);
  const to = (dns: object, policies = {}) =>
    made.all.find({ type: "static", host: "a.test", port: 443, dns }, policies).balancer;
  const single = to({});
  assert.equal(single, to({}));
  single?.choose();
  assert.deepEqual(
    single?.endpoints.map(({ pool }) => [pool.name, pool.hostname]),
    ["10.0.1.1:443", "10.0.1.2:443", "[fd00::1]:443"].map((name) => [name, "a.test:443"]),
  );
  const found = made.all.find({ type: "static", host: "a.test", port: 444 }, {}).balancer?.find("10.0.1.2:444");
  assert.equal(found?.pool.hostname, "a.test:444", "a request of a session uses the name too");
  const tunnel = { backendTunnel: { proxy: { type: "static", host: "proxy.test", port: 8080 } } };
  for (const whole of [to({ mode: "first" }), to({}, tunnel)]) {
    whole?.choose();
    assert.deepEqual(
      whole?.endpoints.map(({ pool }) => pool.name),
      ["a.test:443"],
    );
  }
});

test("addresses that wait for others of their name are backups, also where farther endpoints are left", () => {
  const loadBalancer = { routingPreferences: ["region"], mode: "Failover", healthPolicy: "OnlyHealthy" } as const;
  const found = [
    { at: ["10.0.1.1"], rank: 0, share: 1 },
    { at: ["10.0.1.2"], rank: 1, share: 1 },
  ];
  const endpoint = (host: string, region: string): Workload =>
    workload(host, { workloadIps: [], address: { host, port: 80 }, locality: { region } });
  const workloads = [endpoint("10.0.9.1", "us"), endpoint("a.test", "eu")];
  using made = destinations(
    [{ ...SERVICE, loadBalancer }],
    workloads,
    () => 0.9,
    undefined,
    { "a.test": found },
    { region: "eu" },
  );
  const { balancer } = made.all.find(AT_80, {});
  balancer?.choose();
  const chosen: (string | undefined)[] = [];
  for (let i = 0; i < 3; i++) {
    const next = balancer?.choose();
    chosen.push(next?.pool.name);
    next?.evict({ key: next.key, ms: 60_000, timesEjected: 1, restoreHealth: undefined }, performance.now());
  }
  assert.deepEqual(chosen, ["10.0.1.1:80", "10.0.9.1:80", "10.0.1.2:80"]);
});

test("a tunnel that a route asks for is for those endpoints of a pool that a proxy can reach", () => {
  const hosts = [
    { host: "a.test", port: 80 },
    { path: "/run/a.sock" },
    { host: "b.test", port: 0, srv: "_http._tcp.b.test" },
  ];
  const workloads = hosts.map((address, i) => workload(String(i), { workloadIps: [], address }));
  using made = destinations([SERVICE], workloads);
  const backendTunnel = { proxy: { type: "static", host: "10.0.0.9", port: 3128 } } as const;
  assert.deepEqual(
    made.all
      .find(AT_80, { backendTunnel })
      .balancer?.endpoints.map(({ pool }) => [pool.name, pool.target.tunnel?.proxies]),
    [
      ["a.test:80", [{ host: "10.0.0.9", port: 3128 }]],
      ["unix:/run/a.sock", undefined],
      ["srv:_http._tcp.b.test", undefined],
    ],
  );
});

test("a configuration that takes a destination over keeps the addresses of its name, with their health", () => {
  const found = ["10.0.1.1", "10.0.1.2"].map((each) => ({ at: [each], rank: 0, share: 1 }));
  const addresses = { "a.test": found };
  using made = destinations([], [], () => 0, undefined, addresses);
  const target: Target = { type: "static", host: "a.test", port: 80 };
  const destination = made.all.find(target, {});
  destination.balancer?.choose();
  const [first] = destination.balancer?.endpoints ?? [];
  const next = new Destinations(made.endpoints, new ServiceIndex(), {}, () => 0, made.all.former);
  next.takeOver(destination);
  made.endpoints.release(made.all.held);
  assert.equal(destination.balancer?.endpoints[0], first);
  addresses["a.test"] = found.slice(0, 1);
  destination.balancer?.choose();
  assert.deepEqual(
    made.endpoints.stats().map(({ target }) => target),
    ["10.0.1.1:80"],
    "it is still followed",
  );
  assert.equal(next.find(target, {}), destination);
  made.endpoints.release(next.held);
  assert.deepEqual(made.endpoints.stats(), []);
});
