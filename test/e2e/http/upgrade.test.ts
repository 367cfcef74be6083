import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

const UPGRADE = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
const SWITCH = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: ECHO\r\n\r\n";

test("WebSocket connections work in both directions, including the closing handshake", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  server.on("connection", (socket) => {
    socket.send("hello");
    socket.on("message", (data, binary) => socket.send(data, { binary }));
  });
  await using plane = await TestPlane.start((server.address() as AddressInfo).port);
  const client = new WebSocket(`ws://127.0.0.1:${plane.port}/chat`);
  assert.equal(String((await once(client, "message"))[0]), "hello");
  const large = Buffer.alloc(1_000_000, "x");
  client.send(large);
  assert.deepEqual((await once(client, "message"))[0], large);
  client.close(4000, "bye");
  const [code, reason] = await once(client, "close");
  assert.equal(code, 4000);
  assert.equal(String(reason), "bye");
  assert.equal((await plane.logged("/chat"))["http.status"], 101);
  await new Promise((resolve) => server.close(resolve));
});

test("early bytes of the new protocol are not lost, and either side may end first", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(`${UPGRADE}early`);
  const peer = await upstream.connection();
  const request = await peer.message();
  assert.deepEqual(valuesOf(request, "upgrade"), ["echo"]);
  assert.deepEqual(valuesOf(request, "connection"), ["upgrade"]);
  peer.send(`${SWITCH}first`);
  assert.equal(statusOf(await client.message()), 101);
  await client.take("first");
  await peer.take("early");
  peer.end();
  assert.equal(await client.closed(), "end");
  client.send("still here");
  await peer.take("still here");
  client.end();
  assert.equal(await peer.closed(), "end");
  await plane.logged("/chat");
});

test("the client may end its side first", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(UPGRADE);
  const peer = await upstream.connection();
  await peer.message();
  peer.send(SWITCH);
  await client.message();
  client.end();
  assert.equal(await peer.closed(), "end");
  peer.send("last words");
  await client.take("last words");
  peer.end();
  assert.equal(await client.closed(), "end");
});

test("a reset of one side of a tunnel resets the other", async () => {
  for (const broken of ["client", "upstream"]) {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(UPGRADE);
    const peer = await upstream.connection();
    await peer.message();
    peer.send(SWITCH);
    await client.message();
    (broken === "client" ? client : peer).reset();
    if (broken === "client") await peer.closed();
    else assert.equal(await client.closed(), "reset");
  }
});

test("the response of an upstream that does not switch is forwarded like any other", async () => {
  await using upstream = await RawUpstream.answering(() => reply("no", [], "426 Upgrade Required"));
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  for (let i = 0; i < 2; i++) {
    client.send(UPGRADE);
    assert.equal((await client.message()).body, "no");
  }
});

for (const [asked, chosen, status] of [
  ["a, b/2", "b/2", 101],
  ["a, b/2", "A, b/2", 101],
  ["a, b/2", "b", 502],
  ["a, b/2", "a, other", 502],
  ["a,, b", "", 502],
  ["", "", 502],
] as const)
  test(`an upstream that switches to "${chosen}" where "${asked}" was requested: ${status}`, async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.send(SWITCH.replace("ECHO", chosen));
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(UPGRADE.replace("echo", asked));
    const response = await client.message();
    assert.deepEqual([statusOf(response), ...valuesOf(response, "upgrade")], status === 101 ? [101, chosen] : [502]);
  });

test("an upstream that switches without a request for an upgrade is rejected", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.send(SWITCH.replace("ECHO", "other"));
  });
  await using plane = await TestPlane.start(upstream.port);
  for (const request of [UPGRADE, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"]) {
    const client = await RawPeer.connect(plane.port);
    client.send(request);
    const response = await client.message();
    assert.equal(statusOf(response), 502);
    assert.equal(response.body, "request upgrade failed");
  }
  for (const asked of ["echo", "nothing"])
    await plane.logged(`request upgrade failed: backend tried other but ${asked} was requested`);
  for (const peer of upstream.connections) await peer.closed();
  assert.deepEqual(
    plane.endpoints.stats().map((each) => each.pending),
    [0],
  );
});
