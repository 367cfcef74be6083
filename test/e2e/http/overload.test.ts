import assert from "node:assert/strict";
import { test } from "node:test";
import type { OverloadSystem } from "../../../src/proxy/overload/overload.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/** A thread whose heap the test fills. */
class Heap implements OverloadSystem {
  used = 0;
  now = () => performance.now();
  heap = () => ({ used: this.used, limit: 100, external: 0 });
  collect = (): void => {};
  random = Math.random;
}

const limits = { maxLag: 0, heapShare: 0.8 };

test("a full heap: requests get 503 with Retry-After, connections are closed, work in progress continues", async () => {
  const finish = Promise.withResolvers<void>();
  await using upstream = await RawUpstream.answering(async ({ start }) => {
    if (start.includes("/long")) await finish.promise;
    return reply("answered");
  });
  const thread = new Heap();
  await using plane = await TestPlane.start(upstream.port, { overload: { limits, thread } });
  const working = await RawPeer.connect(plane.port);
  working.send("GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
  await upstream.connection();
  const idle = await RawPeer.connect(plane.port);
  idle.send(GET);
  assert.equal((await idle.message()).body, "answered");

  thread.used = 80;
  plane.overload.sample();
  idle.send("POST /second HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
  const refused = await idle.message();
  assert.deepEqual([statusOf(refused), refused.body], [503, "the gateway is overloaded"]);
  assert.deepEqual(valuesOf(refused, "retry-after"), ["2"]);
  const line = await plane.logged("/second");
  assert.deepEqual(
    [line.reason, line.error],
    ["Overload", "the gateway is overloaded: the heap of the worker is almost full"],
  );
  const late = await RawPeer.connect(plane.port);
  await late.closed();
  finish.resolve();
  assert.equal((await working.message()).body, "answered");

  thread.used = 50;
  plane.overload.sample();
  idle.send(GET);
  assert.equal((await idle.message()).body, "answered");
  for (const client of [working, idle, late]) client.socket.destroy();
});

test("a trace shows that a request was turned away", async () => {
  const thread = new Heap();
  await using plane = await TestPlane.start(1, { overload: { limits, thread } });
  const client = await RawPeer.connect(plane.port);
  thread.used = 90;
  plane.overload.sample();
  const messages = await plane.trace(async () => {
    client.send(GET);
    await client.message();
  });
  const end = messages.at(-1);
  assert.ok(end?.type === "requestFinished" && end.status === 503);
  assert.match(end.error ?? "", /overloaded: the heap/);
  assert.ok(!messages.some(({ type }) => type === "routeSelection"));
  client.socket.destroy();
});

test("TCP connections are turned away too, and open ones continue", async () => {
  await using upstream = await RawUpstream.listen();
  const thread = new Heap();
  const backends = [{ host: `127.0.0.1:${upstream.port}` }];
  const config = { binds: [{ port: 0, listeners: [{ protocol: "TCP", tcpRoutes: [{ backends }] }] }] };
  await using gateway = await LocalGateway.start(config, { overload: { limits, thread } });
  const open = await RawPeer.connect(gateway.port());
  open.send("hello");
  const peer = await upstream.connection();
  await peer.take("hello");
  thread.used = 90;
  gateway.overload.sample();
  const late = await RawPeer.connect(gateway.port());
  await late.closed();
  peer.send("answer");
  await open.take("answer");
  for (const client of [open, late]) client.socket.destroy();
});
