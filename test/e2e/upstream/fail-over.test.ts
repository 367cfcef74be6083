/** Requests that get no connection at one endpoint are sent to another one, without a retry policy. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import type { Service, Workload } from "../../../src/upstream/discovery/discovery.ts";
import { type PlaneOptions, TestPlane, type TestRoute } from "../../helpers/data-plane.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { closedPort, RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";
import { unreachable } from "../../helpers/unreachable.ts";
import { until } from "../../helpers/until.ts";

/** Round robin: of two requests, each endpoint is chosen for one. */
const SERVICE: Service = {
  name: "shop",
  namespace: "a",
  hostname: "shop",
  vips: [],
  ports: { "80": 80 },
  loadBalancer: { routingPreferences: [], mode: "Standard", healthPolicy: "OnlyHealthy", algorithm: "RoundRobin" },
};
const NEVER = 3_600_000;
const POST = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";

function workload(port: number): Workload {
  const uid = `w${port}`;
  const base = { uid, name: uid, namespace: "a", workloadIps: ["127.0.0.1"], status: "healthy", capacity: 1 } as const;
  return { ...base, services: { "a/shop": { "80": port } } };
}

function routes(backendPolicies: PolicySet = {}, policies: PolicySet = {}): TestRoute[] {
  return [{ target: { type: "service", key: "a/shop", port: 80 }, policies, backendPolicies }];
}

/** A gateway in front of a service with endpoints at these ports, which a test may replace before it calls `configure`. */
async function start(ports: readonly number[], backendPolicies?: PolicySet, pool: PlaneOptions["pool"] = {}) {
  const options = { services: [SERVICE], workloads: ports.map(workload), pool };
  return { plane: await TestPlane.start(routes(backendPolicies), options), options };
}

function stats(plane: TestPlane, port: number) {
  const found = plane.endpoints.stats().find(({ target }) => target.endsWith(`:${port}`));
  assert.ok(found !== undefined);
  return found;
}

async function statuses(plane: { readonly port: number }, count: number, request = POST): Promise<number[]> {
  const found: number[] = [];
  for (let i = 0; i < count; i++) found.push(statusOf(await RawPeer.ask(plane.port, request)));
  return found;
}

const echo = (): Promise<RawUpstream> => RawUpstream.answering(({ body }) => reply(body));

suite("an endpoint that refuses connections", () => {
  test("requests go on to another one, whatever their method, and it counts as a failure", async () => {
    await using alive = await echo();
    const dead = await closedPort();
    const { plane } = await start([dead, alive.port]);
    await using _ = plane;
    assert.deepEqual(await statuses(plane, 4), [200, 200, 200, 200]);
    assert.equal((await RawPeer.ask(plane.port, POST)).body, "hello");
    assert.ok(stats(plane, dead).total > 0, "it was tried");
    assert.ok(stats(plane, dead).health < 1);
    assert.equal(stats(plane, alive.port).health, 1);
  });

  test("the trace shows both attempts, and the access log their number", async () => {
    await using alive = await echo();
    const dead = await closedPort();
    const { plane } = await start([dead, alive.port]);
    await using _ = plane;
    // Round robin: one of two requests meets the dead endpoint first.
    const traces = [];
    for (let i = 0; i < 2; i++) traces.push(await plane.trace(() => RawPeer.ask(plane.port, POST)));
    const calls = traces
      .map((events) => events.filter(({ type }) => type === "backendCallStart" || type === "backendCallResult"))
      .find((events) => events.length > 2);
    assert.deepEqual(
      calls?.map((event) =>
        event.type === "backendCallStart" ? event.target : event.type === "backendCallResult" && event.status,
      ),
      [`127.0.0.1:${dead}`, null, `127.0.0.1:${alive.port}`, 200],
    );
    assert.match(JSON.stringify(calls?.[1]), /ECONNREFUSED/);
    assert.equal((await plane.logged('"retry.attempt"'))["retry.attempt"], 1);
  });

  test("a request tries five endpoints, no more", async () => {
    const ports = await Promise.all(Array.from({ length: 7 }, () => closedPort()));
    const { plane } = await start(ports);
    await using _ = plane;
    assert.deepEqual(await statuses(plane, 1), [503]);
    const tried = plane.endpoints.stats().map(({ total }) => total);
    assert.deepEqual(tried.sort(), [0, 0, 1, 1, 1, 1, 1]);
  });

  test("an evicted endpoint is tried if there is no other", async () => {
    await using alive = await echo();
    const { plane } = await start([await closedPort(), alive.port], { health: { eviction: { duration: ms(NEVER) } } });
    await using _ = plane;
    const evicted = stats(plane, alive.port);
    plane.endpoints.evict({ key: evicted.key, ms: NEVER, timesEjected: 1, restoreHealth: undefined });
    assert.deepEqual(await statuses(plane, 2), [200, 200]);
  });

  test("the request limits of the other endpoints are respected", async () => {
    await using busy = await RawUpstream.listen();
    const { plane } = await start([await closedPort(), busy.port], { http: { maxRequests: 1 } });
    await using _ = plane;
    const first = await RawPeer.connect(plane.port);
    first.send(POST);
    await (await busy.connection()).message();
    assert.deepEqual(await statuses(plane, 2), [503, 503]);
    assert.equal(busy.connections.length, 1);
    first.socket.destroy();
  });

  test("a request does not leave an endpoint whose limits are reached", async () => {
    await using busy = await RawUpstream.listen();
    const limits = { http: { maxConnections: 1, maxPendingRequests: 0 } };
    const { plane, options } = await start([busy.port], limits);
    await using _ = plane;
    const first = await RawPeer.connect(plane.port);
    first.send(POST);
    await (await busy.connection()).message();
    await using alive = await echo();
    options.workloads = [busy.port, alive.port].map(workload);
    await plane.configure(routes(limits));
    assert.deepEqual((await statuses(plane, 2)).sort(), [200, 503]);
    first.socket.destroy();
  });

  test("connections of a TCP route try other endpoints too", async () => {
    await using alive = await RawUpstream.listen(async (peer) => peer.send("hi"));
    const services = [{ ...SERVICE, ports: { 80: 80 } }];
    const workloads = [await closedPort(), alive.port].map((port) => ({
      ...{ uid: `w${port}`, name: `w${port}`, namespace: "a", workloadIps: ["127.0.0.1"] },
      services: { "a/shop": { 80: port } },
    }));
    const listeners = [{ protocol: "TCP", tcpRoutes: [{ backends: [{ service: { name: "a/shop", port: 80 } }] }] }];
    await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners }], services, workloads });
    for (let i = 0; i < 4; i++) {
      const client = await RawPeer.connect(gateway.port());
      await client.take("hi");
      client.socket.destroy();
    }
  });
});

suite("an endpoint that does not answer", () => {
  test("a request waits for it only briefly, because there is another one", async () => {
    await using dead = await unreachable();
    await using alive = await echo();
    const { plane } = await start([dead.port, alive.port], {}, { connectTimeout: NEVER, patience: 20 });
    await using _ = plane;
    assert.deepEqual(await statuses(plane, 2), [200, 200]);
    assert.ok(stats(plane, dead.port).health < 1);
    assert.deepEqual([stats(plane, dead.port).pending, stats(plane, dead.port).pool.connecting], [0, 0]);
  });

  test("the connect timeout of the backend itself is kept", async () => {
    await using dead = await unreachable();
    await using alive = await echo();
    const { plane } = await start([dead.port, alive.port], { tcp: { connectTimeout: ms(30) } }, { patience: NEVER });
    await using _ = plane;
    assert.deepEqual(await statuses(plane, 2), [200, 200]);
  });

  test("requests that wait for it leave it at once when it is removed, which does not count as its failure", async () => {
    await using dead = await unreachable();
    await using alive = await echo();
    const { plane, options } = await start([dead.port, alive.port], {}, { connectTimeout: NEVER, patience: NEVER });
    await using _ = plane;
    const clients = await Promise.all([RawPeer.connect(plane.port), RawPeer.connect(plane.port)]);
    for (const client of clients) client.send(POST);
    await until(() => stats(plane, dead.port).pending === 1, "a request at the dead endpoint");
    options.workloads = [workload(alive.port)];
    await plane.configure(routes());
    for (const client of clients) {
      assert.equal(statusOf(await client.message()), 200);
      client.socket.destroy();
    }
  });

  test("requests that wait in the queue of an endpoint leave it when it is removed; the one in flight goes on", async () => {
    await using leaving = await RawUpstream.listen();
    await using alive = await echo();
    const limits = { http: { maxConnections: 1 } };
    const { plane, options } = await start([leaving.port], limits, { connectTimeout: NEVER, patience: NEVER });
    await using _ = plane;
    const [first, second] = await Promise.all([RawPeer.connect(plane.port), RawPeer.connect(plane.port)]);
    first.send(POST);
    const peer = await leaving.connection();
    await peer.message();
    second.send(POST);
    await until(() => stats(plane, leaving.port).pool.waiting === 1, "a request in the queue");
    options.workloads = [workload(alive.port)];
    await plane.configure(routes(limits));
    assert.equal(statusOf(await second.message()), 200);
    peer.send(reply("late"));
    assert.equal((await first.message()).body, "late");
    first.socket.destroy();
    second.socket.destroy();
  });

  test("without another endpoint a request keeps waiting for one that was removed", async () => {
    const go = Promise.withResolvers<void>();
    await using slow = await RawUpstream.listen(async (peer) => {
      await peer.message();
      await go.promise;
      peer.send(reply("first"));
      await peer.message();
      peer.send(reply("second"));
    });
    const limits = { http: { maxConnections: 1 } };
    const { plane, options } = await start([slow.port], limits);
    await using _ = plane;
    const [first, second] = await Promise.all([RawPeer.connect(plane.port), RawPeer.connect(plane.port)]);
    first.send(POST);
    await (await slow.connection()).until(() => true, "");
    second.send(POST);
    await until(() => stats(plane, slow.port).pool.waiting === 1, "a request in the queue");
    options.workloads = [];
    await plane.configure(routes(limits));
    go.resolve();
    assert.equal((await first.message()).body, "first");
    assert.equal((await second.message()).body, "second");
    first.socket.destroy();
    second.socket.destroy();
  });
});

suite("retries", () => {
  test("the first retry leaves the endpoint that has failed", async () => {
    await using failing = await RawUpstream.answering(() => reply("", [], "503 No"));
    await using alive = await echo();
    const options = { services: [SERVICE], workloads: [failing.port, alive.port].map(workload) };
    const retry = { attempts: 1, backoff: ms(0), codes: [503] };
    // Each path belongs to one of the endpoints.
    const sessionAffinity = { source: "request.path" };
    await using plane = await TestPlane.start(routes({ sessionAffinity }, { retry }), options);
    for (let i = 0; i < 16; i++) assert.deepEqual(await statuses(plane, 1, POST.replace("/", `/${i}`)), [200]);
    assert.ok(stats(plane, failing.port).total > 0);
  });

  const split = (backends: readonly object[], retry: object): object => ({
    binds: [{ port: 0, listeners: [{ routes: [{ policies: { retry }, backends }] }] }],
  });
  const at = (port: number, weight: number) => ({ host: `127.0.0.1:${port}`, weight });
  const MOST = 1_000_000;

  for (const [otherBackends, status] of [
    [true, 200],
    [false, 503],
  ] as const)
    test(`otherBackends: ${otherBackends}`, async () => {
      await using alive = await echo();
      const backends = [at(await closedPort(), MOST), at(alive.port, 1)];
      await using gateway = await LocalGateway.start(split(backends, { codes: [], otherBackends }));
      assert.equal(statusOf(await RawPeer.ask(gateway.port(), POST)), status);
    });

  test("otherBackends: each backend is tried once, those of weight 0 never; then the last one again", async () => {
    const seen: string[] = [];
    const failing = (name: string) =>
      RawUpstream.answering(() => {
        seen.push(name);
        return reply("", [], "503 No");
      });
    await using a = await failing("a");
    await using b = await failing("b");
    await using c = await failing("c");
    await using unused = await failing("unused");
    const backends = [at(a.port, MOST), at(b.port, 1), at(c.port, 1), at(unused.port, 0)];
    const retry = { attempts: 3, codes: [503], otherBackends: true };
    await using gateway = await LocalGateway.start(split(backends, retry));
    assert.equal(statusOf(await RawPeer.ask(gateway.port(), POST)), 503);
    assert.deepEqual(seen.slice(0, 3).sort(), ["a", "b", "c"]);
    assert.equal(seen[3], seen[2]);
    assert.equal(seen.length, 4);
  });

  test("otherBackends: a backend without endpoints is skipped, and each backend's own policies apply", async () => {
    await using alive = await RawUpstream.answering(({ fields }) =>
      reply(fields.filter((line) => /^x-(of|retry)/i.test(line)).join()),
    );
    const add = (value: string) => ({ policies: { requestHeaderModifier: { add: { "x-of": value } } } });
    const backends = [
      { service: { name: "a/none", port: 80 }, weight: MOST, ...add("none") },
      { ...at(alive.port, 1), ...add("alive") },
    ];
    const services = [{ name: "none", namespace: "a", hostname: "none", ports: { 80: 80 } }];
    await using gateway = await LocalGateway.start({
      ...split(backends, { codes: [], otherBackends: true }),
      services,
    });
    assert.equal((await RawPeer.ask(gateway.port(), POST)).body, "x-retry-attempt: 1,x-of: alive");
  });

  test("no attempt is spent on a backend without endpoints, unless others may be tried", async () => {
    const retry = { attempts: 3, backoff: ms(0), codes: [] };
    await using plane = await TestPlane.start(routes({}, { retry }), { services: [SERVICE] });
    const events = await plane.trace(async () => {
      assert.equal(statusOf(await RawPeer.ask(plane.port, POST)), 503);
    });
    assert.deepEqual(
      events.filter((event) => event.type === "policy" && event.kind === "retry"),
      [],
    );
  });

  test("otherBackends: a retry does not go to a backend without endpoints", async () => {
    await using alive = await echo();
    const none = { service: { name: "a/none", port: 80 }, weight: 1000 };
    const services = [{ name: "none", namespace: "a", hostname: "none", ports: { 80: 80 } }];
    const backends = [at(await closedPort(), MOST), none, at(alive.port, 1)];
    await using gateway = await LocalGateway.start({
      ...split(backends, { codes: [], otherBackends: true }),
      services,
    });
    assert.deepEqual(await statuses({ port: gateway.port() }, 5), [200, 200, 200, 200, 200]);
  });

  test("otherBackends: the limits of the backend that gets the retry apply", async () => {
    await using alive = await echo();
    const other = { ...at(alive.port, 1), policies: { http: { maxRetries: 0 } } };
    const backends = [at(await closedPort(), MOST), other];
    await using gateway = await LocalGateway.start(split(backends, { codes: [], otherBackends: true }));
    assert.equal(statusOf(await RawPeer.ask(gateway.port(), POST)), 503);
  });

  test("the trace says that a retry has only one endpoint to go to", async () => {
    const port = await closedPort();
    const target = { type: "static", host: "127.0.0.1", port } as const;
    const retry = { attempts: 1, backoff: ms(0), codes: [] };
    await using plane = await TestPlane.start([{ target, policies: { retry } }]);
    const events = await plane.trace(() => RawPeer.ask(plane.port, POST));
    assert.match(JSON.stringify(events), new RegExp(`"onlyEndpoint":"127.0.0.1:${port}"`));
  });
});
