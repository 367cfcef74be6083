import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import type { Service, Workload } from "../../../src/upstream/discovery/discovery.ts";
import type { EndpointStats } from "../../../src/upstream/endpoints/endpoints.ts";
import type { ActiveHealthCheck } from "../../../src/upstream/settings/settings.ts";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestPlane, type TestRoute } from "../../helpers/data-plane.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import {
  closedPort,
  type RawMessage,
  RawPeer,
  RawUpstream,
  reply,
  statusOf,
  valuesOf,
} from "../../helpers/raw-peer.ts";
import { unreachable } from "../../helpers/unreachable.ts";
import { until } from "../../helpers/until.ts";

type Served = Pick<RawUpstream, "port">;

const SERVICE: Service = { name: "shop", namespace: "a", hostname: "shop", vips: [], ports: { "80": 80 } };
const TIMES = { interval: ms(20), timeout: ms(5000), unhealthyThreshold: 1, healthyThreshold: 1 };

function workload({ port }: Served): Workload {
  const uid = `w${port}`;
  const base = { uid, name: uid, namespace: "a", workloadIps: ["127.0.0.1"], status: "healthy", capacity: 1 } as const;
  return { ...base, services: { "a/shop": { "80": port } } };
}

function routes(active: Partial<ActiveHealthCheck>, others: PolicySet = {}): TestRoute[] {
  const health = { active: { ...TIMES, ...active } };
  return [{ target: { type: "service", key: "a/shop", port: 80 }, backendPolicies: { health, ...others } }];
}

/** A gateway in front of a service with these endpoints. */
function start(upstreams: readonly Served[], active: Partial<ActiveHealthCheck>, others?: PolicySet) {
  return TestPlane.start(routes(active, others), { services: [SERVICE], workloads: upstreams.map(workload) });
}

async function ask(plane: TestPlane): Promise<RawMessage> {
  const client = await RawPeer.connect(plane.port);
  client.send("GET /work HTTP/1.1\r\nHost: a\r\n\r\n");
  const response = await client.message();
  client.socket.destroy();
  return response;
}

async function bodies(plane: TestPlane, count: number): Promise<Set<string>> {
  const found = new Set<string>();
  for (let i = 0; i < count; i++) found.add((await ask(plane)).body);
  return found;
}

function stats(plane: TestPlane, { port }: Served): EndpointStats {
  const found = plane.endpoints.stats().find(({ target }) => target.endsWith(`:${port}`));
  assert.ok(found !== undefined);
  return found;
}

function becomes(plane: TestPlane, upstream: Served, healthy: boolean): Promise<true> {
  const is = (): boolean => stats(plane, upstream).check?.healthy === healthy;
  return until(is, `healthy=${healthy}`);
}

/** An endpoint with a switch for its health, which affects only probes. */
async function switched(text: string, well = true) {
  const state = { well, probes: [] as RawMessage[] };
  const upstream = await RawUpstream.answering((request) => {
    if (!request.start.includes("/healthz")) return reply(text);
    state.probes.push(request);
    return reply("", [], state.well ? "204 No Content" : "503 Service Unavailable");
  });
  return Object.assign(state, {
    port: upstream.port,
    connections: upstream.connections,
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  });
}

const HTTP = { http: { path: "/healthz?full=1" } };

test("an endpoint whose probe fails gets no calls until a probe succeeds; changes are logged", async () => {
  await using good = await switched("good");
  await using bad = await switched("bad", false);
  await using plane = await start([good, bad], HTTP);
  await becomes(plane, bad, false);
  assert.deepEqual(await bodies(plane, 20), new Set(["good"]));
  assert.equal(stats(plane, bad).total, 0, "probes are not calls");
  bad.well = true;
  await becomes(plane, bad, true);
  assert.deepEqual(await bodies(plane, 40), new Set(["good", "bad"]));
  const lines = plane.lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ scope, level }) => scope === "upstream::health" && level !== "debug");
  assert.deepEqual(
    lines.map(({ level, message, endpoint, reason }) => ({ level, message, endpoint, reason })),
    [
      { level: "warn", message: "endpoint is unhealthy", endpoint: `127.0.0.1:${bad.port}`, reason: "status 503" },
      { level: "info", message: "endpoint is healthy", endpoint: `127.0.0.1:${bad.port}`, reason: undefined },
    ],
  );
});

test("a probe is a GET with the path, host and policies of the backend", async () => {
  await using only = await switched("only");
  const backendAuth = {
    key: { value: "s3cret", location: { header: { name: "x-key", prefix: "" } } },
    credentials: [],
  };
  const requestHeaderModifier = { set: { "x-probe": "yes" } };
  await using plane = await start([only], { http: { path: "/healthz?full=1", host: "shop.example" } }, {
    backendAuth,
    requestHeaderModifier,
  } as PolicySet);
  await becomes(plane, only, true);
  const [probe] = only.probes;
  assert.ok(probe !== undefined);
  assert.equal(probe.start, "GET /healthz?full=1 HTTP/1.1");
  assert.deepEqual(valuesOf(probe, "host"), ["shop.example"]);
  assert.deepEqual(valuesOf(probe, "user-agent"), ["tracegate-health-check"]);
  assert.deepEqual(valuesOf(probe, "x-key"), ["s3cret"]);
  assert.deepEqual(valuesOf(probe, "x-probe"), ["yes"]);
});

test("a healthy endpoint becomes unhealthy after as many failures in a row as configured, and healthy after as many successes", async () => {
  const results = [true, false, true, false, false, true, false, false, false];
  let more = Promise.withResolvers<void>();
  await using good = await switched("good");
  await using flaky = await RawUpstream.answering(async () => {
    // A probe beyond the list waits: otherwise it would be counted before the test reads the count.
    if (results.length === 0) await more.promise;
    return reply("", [], results.shift() ? "200 OK" : "500 Internal Server Error");
  });
  const thresholds = { timeout: ms(60_000), unhealthyThreshold: 3, healthyThreshold: 2 };
  await using plane = await start([good, flaky], { ...HTTP, ...thresholds });
  await becomes(plane, flaky, false);
  // The last three of the list are the first three in a row.
  assert.deepEqual([stats(plane, flaky).check?.passed, stats(plane, flaky).check?.failed], [3, 6]);
  results.push(true, false, true, true);
  more.resolve();
  more = Promise.withResolvers();
  await becomes(plane, flaky, true);
  assert.deepEqual([stats(plane, flaky).check?.passed, stats(plane, flaky).check?.failed], [6, 7]);
});

test("the first probe of a new endpoint alone decides its health", async () => {
  await using good = await switched("good");
  await using bad = await switched("bad", false);
  await using plane = await start([good, bad], { ...HTTP, unhealthyThreshold: 100 });
  await becomes(plane, bad, false);
  assert.equal(stats(plane, bad).check?.failed, 1);
});

test("only the expected statuses count as healthy", async () => {
  await using redirecting = await RawUpstream.answering(() => reply("", ["location: /login"], "302 Found"));
  await using plane = await start([redirecting], HTTP);
  await becomes(plane, redirecting, true);
  await plane.configure(routes({ http: { path: "/healthz", expectedStatuses: [200, 204] } }));
  await becomes(plane, redirecting, false);
  assert.equal(stats(plane, redirecting).check?.reason, "status 302");
});

test("an endpoint that accepts without a response, or cannot be reached, is unhealthy after the timeout", async () => {
  await using good = await switched("good");
  await using silent = await RawUpstream.listen();
  await using lost = await unreachable();
  const gone = { port: await closedPort() };
  await using plane = await start([good, silent, gone, lost], { ...HTTP, timeout: ms(2000) });
  for (const each of [silent, gone, lost]) await becomes(plane, each, false);
  assert.equal(stats(plane, silent).check?.reason, "no response in time");
  assert.match(stats(plane, gone).check?.reason ?? "", /ECONNREFUSED/);
  assert.match(stats(plane, lost).check?.reason ?? "", /in time|timeout/);
  assert.deepEqual(await bodies(plane, 20), new Set(["good"]));
});

test("while every endpoint is unhealthy, all are used: a wrong path must not stop all traffic", async () => {
  await using one = await switched("one", false);
  await using two = await switched("two", false);
  await using plane = await start([one, two], HTTP);
  await becomes(plane, one, false);
  await becomes(plane, two, false);
  assert.deepEqual(await bodies(plane, 40), new Set(["one", "two"]));
});

test("a reload keeps the health of endpoints that stay, and stops the probes of removed ones", async () => {
  await using good = await switched("good");
  await using bad = await switched("bad", false);
  await using plane = await start([good, bad], HTTP);
  await becomes(plane, bad, false);
  const { failed } = stats(plane, bad).check ?? {};
  await plane.configure(routes(HTTP, { responseHeaderModifier: { remove: ["x"] } }));
  assert.equal(stats(plane, bad).check?.healthy, false);
  assert.ok((stats(plane, bad).check?.failed ?? 0) >= (failed ?? 0));
  await plane.configure([]);
  await until(() => bad.connections.every(({ ended }) => ended !== undefined), "the connections of probes to close");
  const probes = bad.probes.length;
  await plane.configure(routes(HTTP));
  // It starts again as an endpoint that has not been probed.
  assert.equal(stats(plane, bad).check?.healthy, undefined);
  await becomes(plane, bad, false);
  assert.ok(bad.probes.length > probes);
});

test("a probe does not wait behind requests for a connection", async () => {
  await using only = await RawUpstream.listen(async (peer) => {
    const { start: line } = await peer.message();
    if (line.includes("/healthz")) peer.send(reply("", ["connection: close"]));
  });
  await using plane = await start([only], HTTP, { http: { maxConnections: 1, maxPendingRequests: 0 } });
  const client = await RawPeer.connect(plane.port);
  client.send("GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
  await until(() => stats(plane, only).pending === 1);
  const passed = stats(plane, only).check?.passed ?? 0;
  await until(() => (stats(plane, only).check?.passed ?? 0) > passed + 1);
  assert.equal(stats(plane, only).check?.failed, 0);
  client.socket.destroy();
});

test("TCP: a connection is enough; another port can be probed", async () => {
  await using silent = await RawUpstream.listen();
  await using plane = await start([silent], { tcp: {} });
  await becomes(plane, silent, true);
  await plane.configure(routes({ tcp: {}, port: await closedPort() }));
  await becomes(plane, silent, false);
});

test("gRPC: calls grpc.health.v1 for the service", async () => {
  const asked: string[] = [];
  let status = 1;
  await using service = await GrpcServer.start({
    "/grpc.health.v1.Health/Check": {
      unary: (message) => {
        asked.push(message.toString("latin1"));
        return Buffer.from([0x08, status]);
      },
    },
  });
  await using plane = await start([service], { grpc: { service: "shop" } });
  await becomes(plane, service, true);
  assert.equal(asked[0], "\n\x04shop");
  status = 2;
  await becomes(plane, service, false);
  assert.equal(stats(plane, service).check?.reason, "the service is NOT_SERVING");
});

test("gRPC: a server whose response is another message is unhealthy", async () => {
  await using service = await GrpcServer.start({ "/grpc.health.v1.Health/Check": { unary: () => Buffer.of(0xff) } });
  await using plane = await start([service], { grpc: { service: "" } });
  await becomes(plane, service, false);
  assert.match(stats(plane, service).check?.reason ?? "", /not a HealthCheckResponse/);
});

test("gRPC: a server without the health service is unhealthy", async () => {
  await using service = await GrpcServer.start({});
  await using plane = await start([service], { grpc: { service: "" } });
  await becomes(plane, service, false);
  assert.match(stats(plane, service).check?.reason ?? "", /gRPC status 12/);
});

test("probes verify the certificate as calls do", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  const server = createServer(ca.issue("shop.example"), (_request, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const upstream = { port: (server.address() as AddressInfo).port };
  const tls = (hostname: string): PolicySet => ({
    backendTLS: { hostname, root: ca.cert, insecure: false, insecureHost: false },
  });
  try {
    await using plane = await start([upstream], HTTP, tls("shop.example"));
    await becomes(plane, upstream, true);
    await plane.configure(routes({ tcp: {} }, tls("other.example")));
    await becomes(plane, upstream, false);
    assert.match(stats(plane, upstream).check?.reason ?? "", /shop\.example/);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("a trace says which endpoints were excluded, and why", async () => {
  await using good = await switched("good");
  await using bad = await switched("bad", false);
  await using plane = await start([good, bad], HTTP);
  await becomes(plane, bad, false);
  const messages = await plane.trace(async () => assert.equal(statusOf(await ask(plane)), 200));
  const event = messages.find((message) => message.type === "policy" && message.kind === "health");
  assert.ok(event?.type === "policy" && event.result.type === "apply");
  assert.deepEqual(event.result.data, {
    endpoint: `127.0.0.1:${good.port}`,
    leftOut: [`127.0.0.1:${bad.port}: unhealthy: status 503`],
  });
});
