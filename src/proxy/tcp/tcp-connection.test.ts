/** What a TCP connection says about its backend; what its client sees is in test/e2e/tcp. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { LocalGateway } from "../../../test/helpers/local-gateway.ts";
import { closedPort, queueOf, RawPeer, RawUpstream, settled } from "../../../test/helpers/raw-peer.ts";

/** A listener that leads to a port of 127.0.0.1; a failure evicts the backend. */
function gatewayTo(port: number): Promise<LocalGateway> {
  const backend = { host: `127.0.0.1:${port}`, policies: { health: { eviction: { duration: "1h" } } } };
  const listeners = [{ name: "raw", protocol: "TCP", tcpRoutes: [{ name: "r", backends: [backend] }] }];
  return LocalGateway.start({ binds: [{ port: 0, listeners }] });
}

/** What the balancer knows of the backend, once no connection is in flight. */
async function outcome(gateway: LocalGateway): Promise<{ total: number; failures: number; evicted: boolean }> {
  await gateway.until(() => gateway.endpoints().every(({ total, pending }) => total > 0 && pending === 0), "the end");
  const [stats] = gateway.endpoints();
  assert.ok(stats !== undefined);
  return { total: stats.total, failures: stats.consecutiveFailures, evicted: stats.evictedMs !== null };
}

const WORKED = { total: 1, failures: 0, evicted: false };
const FAILED = { total: 1, failures: 1, evicted: true };

test("a connection that both sides end is a success", async () => {
  await using upstream = await RawUpstream.listen();
  await using gateway = await gatewayTo(upstream.port);
  const client = await RawPeer.connect(gateway.port());
  const backend = await upstream.connection();
  client.send("x".repeat(200_000));
  client.end();
  backend.end();
  assert.equal(await backend.closed(), "end");
  assert.equal(backend.received.length, 200_000, "what was written last arrives too");
  assert.deepEqual(await outcome(gateway), WORKED);
});

test("a backend that cannot be reached, or that resets, is a failure", async () => {
  await using nowhere = await gatewayTo(await closedPort());
  const refused = await RawPeer.connect(nowhere.port());
  await refused.closed();
  assert.deepEqual(await outcome(nowhere), FAILED);

  await using upstream = await RawUpstream.listen();
  await using gateway = await gatewayTo(upstream.port);
  const client = await RawPeer.connect(gateway.port());
  (await upstream.connection()).reset();
  assert.equal(await client.closed(), "reset", "a client must not take what it has for all");
  assert.deepEqual(await outcome(gateway), FAILED);
});

test("a client that breaks off does not count for the backend", async () => {
  await using upstream = await RawUpstream.listen();
  await using gateway = await gatewayTo(upstream.port);
  const client = await RawPeer.connect(gateway.port());
  const backend = await upstream.connection();
  backend.send("hello");
  await client.take("hello");
  client.reset();
  await backend.closed();
  assert.deepEqual(await outcome(gateway), WORKED);
});

/** Random, so that bytes that are lost, repeated or overwritten while they wait show. */
test("a side that does not read pauses the other one, and gets every byte once it reads again", async () => {
  await using upstream = await RawUpstream.listen();
  await using gateway = await gatewayTo(upstream.port);
  const client = await RawPeer.connect(gateway.port());
  const backend = await upstream.connection();
  const bytes = randomBytes(32 * 1024 * 1024);
  for (const [from, to] of [
    [backend, client],
    [client, backend],
  ] as const) {
    to.socket.pause();
    from.send(bytes);
    await settled(() => queueOf(from));
    assert.ok(queueOf(from) > 0, "the gateway does not read what it cannot pass on");
    const hash = createHash("sha256");
    let length = 0;
    const all = Promise.withResolvers<void>();
    to.socket.removeAllListeners("data");
    to.socket.on("data", (piece: Buffer) => {
      hash.update(piece);
      length += piece.length;
      if (length === bytes.length) all.resolve();
    });
    to.socket.on("close", () => all.reject(new Error(`closed after ${length} bytes`)));
    to.socket.resume();
    await all.promise;
    assert.equal(hash.digest("hex"), createHash("sha256").update(bytes).digest("hex"));
  }
  client.end();
  backend.end();
  await client.closed();
});
