import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import type { Service, Workload } from "../../../src/upstream/discovery/discovery.ts";
import { TestPlane, type TestRoute } from "../../helpers/data-plane.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { closedPort, RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

const FULL = "too many requests to the backend";
const SERVICE: Service = { name: "shop", namespace: "a", hostname: "shop", vips: [], ports: { "80": 80 } };

function workload(port: number): Workload {
  const uid = `w${port}`;
  const base = { uid, name: uid, namespace: "a", workloadIps: ["127.0.0.1"], status: "healthy", capacity: 1 } as const;
  return { ...base, services: { "a/shop": { "80": port } } };
}

function start(ports: readonly number[], backendPolicies: PolicySet, policies: PolicySet = {}): Promise<TestPlane> {
  const route: TestRoute = { target: { type: "service", key: "a/shop", port: 80 }, policies, backendPolicies };
  return TestPlane.start([route], { services: [SERVICE], workloads: ports.map(workload) });
}

async function send(plane: TestPlane, path: string): Promise<RawPeer> {
  const client = await RawPeer.connect(plane.port);
  client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  return client;
}

function pending(plane: TestPlane): number {
  return plane.endpoints.stats().reduce((sum, each) => sum + each.pending, 0);
}

function overflows(plane: TestPlane): number {
  return plane.endpoints.stats().reduce((sum, each) => sum + each.overflows, 0);
}

test("maxRequests: further requests go to other endpoints, and get 503 if all are full", async () => {
  await using one = await RawUpstream.listen();
  await using two = await RawUpstream.listen();
  await using plane = await start([one.port, two.port], { http: { maxRequests: 2 } });
  const clients: RawPeer[] = [];
  for (let i = 1; i <= 4; i++) {
    clients.push(await send(plane, `/${i}`));
    await until(() => pending(plane) === i);
  }
  assert.deepEqual(
    plane.endpoints.stats().map((each) => each.pending),
    [2, 2],
  );
  const refused = await send(plane, "/5");
  const answer = await refused.message();
  assert.deepEqual([statusOf(answer), answer.body], [503, FULL]);
  assert.equal((await plane.logged("/5")).error, `${FULL}: 2 requests are in progress`);
  // It says nothing about the health of the endpoint.
  assert.ok(
    plane.endpoints.stats().every(({ consecutiveFailures, health }) => consecutiveFailures === 0 && health === 1),
  );
  assert.equal(overflows(plane), 1);
  assert.equal(pending(plane), 4);

  const peer = await one.connection();
  await peer.message();
  peer.send(reply("answered"));
  await until(() => pending(plane) === 3);
  const next = await send(plane, "/6");
  await until(() => pending(plane) === 4);
  assert.equal(overflows(plane), 1);
  for (const client of [...clients, refused, next]) client.socket.destroy();
});

test("when the healthy endpoints are full, calls do not go to one that is evicted", async () => {
  await using good = await RawUpstream.listen();
  const gone = await closedPort();
  await using plane = await start([good.port, gone], { http: { maxRequests: 1 } });
  const bad = plane.endpoints.stats().find(({ target }) => target.endsWith(`:${gone}`));
  assert.ok(bad !== undefined);
  plane.endpoints.evict({ key: bad.key, ms: 60_000, timesEjected: 1, restoreHealth: undefined });
  const busy = await send(plane, "/busy");
  await until(() => pending(plane) === 1);
  const refused = await send(plane, "/refused");
  assert.equal((await refused.message()).body, FULL);
  assert.equal(overflows(plane), 1);
  for (const client of [busy, refused]) client.socket.destroy();
});

test("maxRetries: while that many retried requests are in progress, failures are not retried", async () => {
  let answers = false;
  await using upstream = await RawUpstream.listen(async (peer) => {
    for (;;) {
      const message = await peer.message();
      const [retry = "0"] = valuesOf(message, "x-retry-attempt");
      // The retry of the first request hangs.
      if (retry !== "0" && message.start.includes("/first") && !answers) continue;
      peer.send(retry === "2" ? reply("retried") : reply("failed", [], "500 Internal Server Error"));
    }
  });
  const retry = { attempts: 2, backoff: ms(0), codes: [500] };
  await using plane = await start([upstream.port], { http: { maxRetries: 1 } }, { retry });
  const first = await send(plane, "/first");
  await until(() => pending(plane) === 1 && (plane.endpoints.stats()[0]?.total ?? 0) === 2);
  const second = await send(plane, "/second");
  const failed = await second.message();
  assert.deepEqual([statusOf(failed), failed.body], [500, "failed"]);
  const metric = plane.metrics.snapshot().retry_overflow_total;
  assert.deepEqual(
    metric?.map(({ value }) => value),
    [1],
  );
  // The first one ends, and its place is free for all retries of the second.
  first.socket.destroy();
  await until(() => pending(plane) === 0);
  answers = true;
  second.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.equal((await second.message()).body, "retried");
  second.socket.destroy();
});

test("retryBudget: failures beyond it are not retried but forwarded as they are, and the trace says so", async () => {
  let asked = 0;
  await using upstream = await RawUpstream.answering(() => {
    asked++;
    return reply("failed", ["retry-after: 7"], "500 Internal Server Error");
  });
  const retry = { attempts: 3, backoff: ms(0), codes: [500] };
  // Nothing expires during the test.
  const retryBudget = { percent: 50, interval: ms(600_000), minRetryRate: { count: 1, interval: ms(600_000) } };
  await using plane = await start([upstream.port], { retryBudget }, { retry });
  const client = await RawPeer.connect(plane.port);
  const ask = async (): Promise<number> => {
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const answer = await client.message();
    assert.deepEqual([statusOf(answer), answer.body], [500, "failed"]);
    assert.ok(answer.fields.includes("retry-after: 7"));
    return asked;
  };
  // One by the share, and none by the minimum rate.
  assert.equal(await ask(), 2);
  assert.equal(await ask(), 4);
  const events = await plane.trace(ask);
  assert.match(JSON.stringify(events), /the retry budget of the backend is used up/);
  assert.equal(asked, 6);
  const [overflows] = plane.metrics.snapshot().retry_overflow_total ?? [];
  assert.equal(overflows?.value, 3);
  client.socket.destroy();
});

test("retryBudget: routes to one backend share it, and reloads keep its counts", async () => {
  let asked = 0;
  const fail = (): string => {
    asked++;
    return reply("failed", [], "500 Internal Server Error");
  };
  await using upstream = await RawUpstream.answering(fail);
  await using otherUpstream = await RawUpstream.answering(fail);
  const route = (prefix: string, count = 1, { port } = upstream) => ({
    matches: [{ path: { pathPrefix: prefix } }],
    policies: { retry: { codes: [500] } },
    backends: [
      {
        host: `127.0.0.1:${port}`,
        policies: {
          retryBudget: { percent: 0, interval: "1h", minRetryRate: { count, interval: "1h" } },
          http: { maxRetries: 1 },
        },
      },
    ],
  });
  const config = (...routes: object[]) => ({ binds: [{ port: 0, listeners: [{ routes }] }] });
  await using gateway = await LocalGateway.start(config(route("/b"), route("/a")));
  /** Returns how many requests reach the backend. */
  const ask = async (path: string): Promise<number> => {
    const before = asked;
    const client = await RawPeer.connect(gateway.port());
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    assert.equal(statusOf(await client.message()), 500);
    client.socket.destroy();
    return asked - before;
  };
  assert.deepEqual([await ask("/a"), await ask("/b")], [2, 1]);
  await gateway.reconfigure(config(route("/b")));
  await gateway.reconfigure(config(route("/b"), route("/c")));
  assert.deepEqual([await ask("/b"), await ask("/c")], [1, 1]);
  await gateway.reconfigure(config(route("/d"), route("/b")));
  assert.deepEqual([await ask("/b"), await ask("/d")], [1, 1]);
  // Another backend has its own budget, and so has the same one with other settings.
  await gateway.reconfigure(config(route("/b"), route("/other", 1, otherUpstream), route("/more", 2)));
  assert.deepEqual([await ask("/other"), await ask("/more"), await ask("/b")], [2, 2, 1]);
  await gateway.reconfigure(config(route("/b", 3)));
  assert.equal(await ask("/b"), 2, "what the budget refused is no retry in progress");
});
