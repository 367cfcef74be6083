/** What an attempt reports to its endpoint; what clients see of attempts is in test/e2e/upstream and test/e2e/policies. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../../test/helpers/data-plane.ts";
import {
  closedPort,
  RawPeer,
  RawUpstream,
  reply,
  settled,
  statusOf,
  valuesOf,
} from "../../../test/helpers/raw-peer.ts";
import { ms } from "../../base/durations.ts";
import type { PolicySet } from "../../policies/policy-set.ts";

const GET = "GET /it HTTP/1.1\r\nHost: a\r\n\r\n";

function planeTo(port: number, policies: PolicySet = {}, host = "127.0.0.1"): Promise<TestPlane> {
  return TestPlane.start([{ target: { type: "static", host, port }, policies }]);
}

/** What the balancer knows of the only endpoint. */
function known(plane: TestPlane): unknown {
  const [{ health, pending, total } = { health: Number.NaN, pending: Number.NaN, total: Number.NaN }] =
    plane.endpoints.stats();
  return { health, pending, total };
}

test("a response counts once it is complete", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await planeTo(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  const peer = await upstream.connection();
  await peer.message();
  peer.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
  await client.take("\r\n\r\n");
  assert.deepEqual(known(plane), { health: 1, pending: 1, total: 1 });
  peer.send("ok");
  await client.take("ok");
  assert.deepEqual(known(plane), { health: 1, pending: 0, total: 1 });
  client.socket.destroy();
});

test("a status of 5xx and a refused connection are failures", async () => {
  await using upstream = await RawUpstream.answering(() => reply("", [], "500 No"));
  await using plane = await planeTo(upstream.port);
  assert.equal(statusOf(await RawPeer.ask(plane.port, GET)), 500);
  assert.deepEqual(known(plane), { health: 0.7, pending: 0, total: 1 });
  await using nowhere = await planeTo(await closedPort());
  assert.equal(statusOf(await RawPeer.ask(nowhere.port, GET)), 503);
  assert.deepEqual(known(nowhere), { health: 0.7, pending: 0, total: 1 });
});

test("a response that the retry policy does not pass on counts by its status", async () => {
  let failures = 1;
  await using upstream = await RawUpstream.answering(() =>
    failures-- > 0 ? reply("busy", [], "503 Service Unavailable") : reply("ok"),
  );
  await using plane = await planeTo(upstream.port, { retry: { attempts: 1, backoff: ms(0), codes: [503] } });
  assert.equal((await RawPeer.ask(plane.port, GET)).body, "ok");
  assert.deepEqual(known(plane), { health: 0.3 + 0.7 * 0.7, pending: 0, total: 2 });
});

test("a client that leaves ends the call, which does not count for the endpoint", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await planeTo(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  const peer = await upstream.connection();
  await peer.message();
  client.socket.destroy();
  await peer.closed();
  assert.deepEqual(known(plane), { health: 1, pending: 0, total: 1 });
});

for (const [who, request, health] of [
  ["an upstream that does not answer", GET, 0.7],
  ["a client that does not send its body", "PUT /it HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", 1],
] as const)
  for (const policies of [{ timeout: { backendRequestTimeout: ms(40) } }, { timeout: { requestTimeout: ms(40) } }])
    test(`${Object.keys(policies.timeout).join()}: ${who} has health ${health} afterwards`, async () => {
      await using upstream = await RawUpstream.listen();
      await using plane = await planeTo(upstream.port, policies);
      assert.equal(statusOf(await RawPeer.ask(plane.port, request)), 504);
      assert.deepEqual(known(plane), { health, pending: 0, total: 1 });
    });

test("switching to a protocol that was not requested counts as the endpoint's failure", async () => {
  await using upstream = await RawUpstream.answering(
    () => "HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n",
  );
  await using plane = await planeTo(upstream.port);
  assert.equal(statusOf(await RawPeer.ask(plane.port, GET)), 502);
  assert.deepEqual(known(plane), { health: 0.7, pending: 0, total: 1 });
});

test("a tunnel is in flight until both directions have ended", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await planeTo(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: own\r\n\r\n");
  const peer = await upstream.connection();
  await peer.message();
  peer.send("HTTP/1.1 101 Switching Protocols\r\nupgrade: own\r\nconnection: upgrade\r\n\r\n");
  await client.take("\r\n\r\n");
  peer.end();
  await client.closed();
  assert.deepEqual(known(plane), { health: 1, pending: 1, total: 1 });
  client.send("last");
  client.end();
  await peer.take("last");
  await settled(() => plane.endpoints.stats()[0]?.pending ?? 0);
  assert.deepEqual(known(plane), { health: 1, pending: 0, total: 1 });
});

test("an upstream with a host name gets that as its authority, one with an address the client's", async () => {
  await using upstream = await RawUpstream.answering((request) => reply(valuesOf(request, "host").join()));
  await using named = await planeTo(upstream.port, {}, "localhost");
  assert.equal((await RawPeer.ask(named.port, GET)).body, `localhost:${upstream.port}`);
  await using addressed = await planeTo(upstream.port);
  assert.equal((await RawPeer.ask(addressed.port, GET)).body, "a");
});
