import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import type { Service, Workload } from "../../../src/upstream/discovery/discovery.ts";
import { TestPlane, type TestRoute } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

type Served = Pick<RawUpstream, "port">;

const SERVICE: Service = { name: "shop", namespace: "a", hostname: "shop", vips: [], ports: { "80": 80 } };

function workload(uid: string, port: number): Workload {
  const base = { uid, name: uid, namespace: "a", workloadIps: ["127.0.0.1"], status: "healthy", capacity: 1 } as const;
  return { ...base, services: { "a/shop": { "80": port } } };
}

function routes(backendPolicies: PolicySet, policies: PolicySet = {}): TestRoute[] {
  return [{ target: { type: "service", key: "a/shop", port: 80 }, policies, backendPolicies }];
}

/** A gateway in front of a service with these upstreams. */
function start(upstreams: readonly Served[], backendPolicies: PolicySet, policies?: PolicySet) {
  const workloads = upstreams.map(({ port }, i) => workload(`w${i}`, port));
  return TestPlane.start(routes(backendPolicies, policies), { services: [SERVICE], workloads });
}

function answering(text: string, fields: string[] = [], status = "200 OK"): Promise<RawUpstream> {
  return RawUpstream.answering(() => reply(text, fields, status));
}

async function bodies(plane: TestPlane, count: number): Promise<string[]> {
  const found: string[] = [];
  for (let i = 0; i < count; i++) found.push((await RawPeer.ask(plane.port, GET)).body);
  return found;
}

function stats(plane: TestPlane, { port }: Served) {
  const found = plane.endpoints.stats().find(({ target }) => target.endsWith(`:${port}`));
  assert.ok(found !== undefined);
  return found;
}

/** Sends requests until the first upstream has got one, whatever the responses are. */
async function untilAsked(plane: TestPlane, upstream: Served): Promise<void> {
  for (let i = 0; i < 200 && stats(plane, upstream).total === 0; i++) await RawPeer.ask(plane.port, GET);
  assert.equal(stats(plane, upstream).total, 1);
}

test("an endpoint that returns 5xx is evicted, and stays evicted after a reload", async () => {
  await using good = await answering("good");
  await using bad = await answering("bad", [], "500 Internal Server Error");
  const policy = { health: { eviction: { duration: ms(60_000) } } };
  await using plane = await start([bad, good], policy);
  await untilAsked(plane, bad);
  assert.deepEqual(new Set(await bodies(plane, 20)), new Set(["good"]));
  await plane.configure(routes(policy));
  assert.deepEqual(new Set(await bodies(plane, 20)), new Set(["good"]));
  const { timesEjected, evictedMs, health, consecutiveFailures } = stats(plane, bad);
  assert.equal(timesEjected, 1);
  assert.ok(evictedMs !== null && evictedMs > 30_000 && evictedMs <= 60_000);
  assert.deepEqual([health, consecutiveFailures], [0.7, 1]);
});

test("an endpoint that refuses connections is evicted: a retry and all later requests go elsewhere", async () => {
  await using good = await answering("good");
  const gone = await answering("gone");
  const { port } = gone;
  await gone[Symbol.asyncDispose]();
  await using plane = await start(
    [{ port }, good],
    { health: { eviction: { duration: ms(60_000) } } },
    { retry: { attempts: 1, backoff: ms(0), codes: [] } },
  );
  const found: number[] = [];
  for (let i = 0; i < 40; i++) found.push(statusOf(await RawPeer.ask(plane.port, GET)));
  assert.deepEqual(new Set(found), new Set([200]));
  assert.ok(stats(plane, { port }).total <= 1);
});

test("without eviction a failing endpoint is only chosen less often", async () => {
  await using good = await answering("good");
  await using bad = await answering("bad", [], "500 Internal Server Error");
  await using plane = await start([bad, good], { health: {} });
  await untilAsked(plane, bad);
  assert.equal(stats(plane, bad).evictedMs, null);
  assert.equal(stats(plane, bad).health, 0.7);
});

test("a 429 is a failure if the expression says so, and its Retry-After sets the duration", async () => {
  await using good = await answering("good");
  await using busy = await answering("busy", ["retry-after: 120"], "429 Too Many Requests");
  await using plane = await start([busy, good], {
    health: { unhealthyExpression: "response.code == 429", eviction: {} },
  });
  await untilAsked(plane, busy);
  const { evictedMs } = stats(plane, busy);
  assert.ok(evictedMs !== null && evictedMs > 60_000 && evictedMs <= 120_000);
});

test("an expression replaces the default: a 500 that it does not match is a success", async () => {
  await using only = await answering("no", [], "500 Internal Server Error");
  await using plane = await start([only], { health: { unhealthyExpression: "response.code == 502", eviction: {} } });
  assert.equal(statusOf(await RawPeer.ask(plane.port, GET)), 500);
  assert.equal(stats(plane, only).health, 1);
});

test("gRPC failures in trailers count", async () => {
  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/grpc\r\n\r\n";
  await using failing = await RawUpstream.answering(() => `${chunked}1\r\nx\r\n0\r\ngrpc-status: 14\r\n\r\n`);
  await using plane = await start([failing], { health: { eviction: {} } });
  assert.equal(statusOf(await RawPeer.ask(plane.port, GET)), 200);
  assert.equal(stats(plane, failing).consecutiveFailures, 1);
  assert.notEqual(stats(plane, failing).evictedMs, null);
});

test("expressions read the gRPC status in trailers, and the head as the backend sent it", async () => {
  const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Kind: own\r\nContent-Type: application/grpc\r\n\r\n";
  let status = 5;
  await using only = await RawUpstream.answering(() => `${head}1\r\nx\r\n0\r\ngrpc-status: ${status}\r\n\r\n`);
  const unhealthyExpression = 'response.grpcStatus == 14 && response.headers["x-kind"] == "own"';
  const removal = { responseHeaderModifier: { remove: ["x-kind"] } };
  await using plane = await start([only], { health: { unhealthyExpression, eviction: {} }, ...removal });
  assert.deepEqual(valuesOf(await RawPeer.ask(plane.port, GET), "x-kind"), []);
  assert.equal(stats(plane, only).consecutiveFailures, 0);
  status = 14;
  await RawPeer.ask(plane.port, GET);
  assert.equal(stats(plane, only).consecutiveFailures, 1);
});

test("if every endpoint is evicted, all are used, and a success counts", async () => {
  let fails = true;
  await using only = await RawUpstream.answering(() =>
    fails ? reply("bad", [], "503 Service Unavailable") : reply("good"),
  );
  await using plane = await start([only], { health: { eviction: { duration: ms(60_000) } } });
  assert.equal(statusOf(await RawPeer.ask(plane.port, GET)), 503);
  fails = false;
  assert.equal(statusOf(await RawPeer.ask(plane.port, GET)), 200);
  assert.equal(stats(plane, only).consecutiveFailures, 0);
  assert.equal(stats(plane, only).timesEjected, 0);
});

test("policies that reject a response and clients that leave do not evict the endpoint", async () => {
  await using good = await answering("more than is allowed");
  await using plane = await start(
    [good],
    { health: { eviction: {} } },
    { buffer: { response: { maxBytes: 4, failureMode: "failClosed" } } },
  );
  assert.equal(statusOf(await RawPeer.ask(plane.port, GET)), 502);
  assert.equal(stats(plane, good).consecutiveFailures, 0);

  await using silent = await RawUpstream.listen();
  await using other = await start([silent], { health: { eviction: {} } });
  const client = await RawPeer.connect(other.port);
  client.send("GET /left HTTP/1.1\r\nHost: a\r\n\r\n");
  await (await silent.connection()).message();
  client.socket.destroy();
  await other.logged("/left");
  assert.equal(stats(other, silent).consecutiveFailures, 0);
});

test("the nearest workloads get the requests; others get them only while those are evicted", async () => {
  let fails = false;
  await using near = await RawUpstream.answering(() => reply("near", [], fails ? "503 Service Unavailable" : "200 OK"));
  await using far = await answering("far");
  const policies = { health: { eviction: { duration: ms(60_000) } } };
  await using plane = await TestPlane.start(routes(policies), {
    services: [
      {
        ...SERVICE,
        loadBalancer: { routingPreferences: ["region"], mode: "Failover", healthPolicy: "OnlyHealthy" },
      },
    ],
    workloads: [
      { ...workload("far", far.port), locality: { region: "us" } },
      { ...workload("near", near.port), locality: { region: "eu" } },
    ],
    locality: { region: "eu" },
  });
  assert.deepEqual(new Set(await bodies(plane, 10)), new Set(["near"]));
  fails = true;
  assert.deepEqual(await bodies(plane, 3), ["near", "far", "far"]);
});

test("sessionAffinity: a value always goes to the same endpoint, and to another one while that is evicted", async () => {
  let failing = "";
  const one = (name: string) =>
    RawUpstream.answering(() => reply(name, [], failing === name ? "500 Internal Server Error" : "200 OK"));
  await using a = await one("a");
  await using b = await one("b");
  await using c = await one("c");
  await using plane = await start([a, b, c], {
    health: { eviction: { duration: ms(60_000) } },
    sessionAffinity: { source: 'request.headers["x-user"]' },
  });
  const as = async (user: string) =>
    (await RawPeer.ask(plane.port, `GET / HTTP/1.1\r\nHost: a\r\nx-user: ${user}\r\n\r\n`)).body;
  const before = await as("ann");
  for (let i = 0; i < 10; i++) assert.equal(await as("ann"), before);
  const everywhere = new Set<string>();
  for (let i = 0; i < 40; i++) everywhere.add(await as(`user-${i}`));
  assert.equal(everywhere.size, 3);
  failing = before;
  assert.equal(await as("ann"), before);
  const after = await as("ann");
  assert.notEqual(after, before);
  assert.equal(await as("ann"), after);
  failing = "";
  assert.ok(
    (await bodies(plane, 20)).every((body) => body !== before),
    "without a value: any that is not evicted",
  );
});

test("sessionAffinity: a value in the body of the request is read before an endpoint is chosen", async () => {
  await using a = await answering("a");
  await using b = await answering("b");
  await using c = await answering("c");
  await using plane = await start([a, b, c], { sessionAffinity: { source: "json(request.body).user" } });
  const as = async (user: string): Promise<string> => {
    const body = JSON.stringify({ user });
    const client = await RawPeer.connect(plane.port);
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`);
    client.send(body);
    const response = await client.message();
    client.socket.destroy();
    return response.body;
  };
  const before = await as("ann");
  for (let i = 0; i < 20; i++) assert.equal(await as("ann"), before);
  const everywhere = new Set<string>();
  for (let i = 0; i < 40; i++) everywhere.add(await as(`user-${i}`));
  assert.equal(everywhere.size, 3);
});

test("sessionAffinity: if the endpoint of a value fails, a retry goes to another one, and the next request to the same again", async () => {
  let failing = "";
  const one = (name: string) =>
    RawUpstream.answering(() => reply(name, [], failing === name ? "503 Service Unavailable" : "200 OK"));
  await using a = await one("a");
  await using b = await one("b");
  await using c = await one("c");
  await using plane = await start(
    [a, b, c],
    { sessionAffinity: { source: 'request.headers["x-user"]' } },
    { retry: { attempts: 8, backoff: ms(0), codes: [503] } },
  );
  const asAnn = () => RawPeer.ask(plane.port, "GET / HTTP/1.1\r\nHost: a\r\nx-user: ann\r\n\r\n");
  const { body } = await asAnn();
  failing = body;
  assert.equal(statusOf(await asAnn()), 200);
  failing = "";
  assert.equal((await asAnn()).body, body);
});
