import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { TraceMessage } from "../../../src/trace/events.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { closedPort, RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";

/** The trace's events during the stream, with their positions. */
function progressOf(messages: readonly TraceMessage[]): unknown[] {
  return messages.flatMap((message) =>
    message.type === "streamProgress" ? [{ received: message.received, sent: message.sent }] : [],
  );
}

/** Advances only the clock of the trace, by a second. */
function pass(t: TestContext): void {
  t.mock.timers.tick(1000);
}

test("server-sent events: a trace counts chunks during the response, and ends with it", async (t) => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  t.mock.timers.enable({ apis: ["setInterval"] });
  const messages = await plane.trace(async () => {
    client.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    const peer = await upstream.connection();
    await peer.message();
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const text of ["one", "two"]) {
      peer.send(`${(text.length + 8).toString(16)}\r\ndata: ${text}\n\n\r\n`);
      await client.take(text);
    }
    pass(t);
    peer.send("d\r\ndata: three\n\n\r\n0\r\n\r\n");
    await client.take("three");
  });
  assert.deepEqual(progressOf(messages), [
    { received: { chunks: 0, bytes: 0 }, sent: { chunks: 2, bytes: 22 } },
    { received: { chunks: 0, bytes: 0 }, sent: { chunks: 3, bytes: 35 } },
  ]);
  const types = messages.map(({ type }) => type);
  assert.ok(types.indexOf("streamProgress") > types.lastIndexOf("responseSnapshot"));
  assert.equal(types.at(-1), "requestFinished");
  client.socket.destroy();
});

test("a WebSocket: both directions count, and the task dump shows the bytes", async (t) => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  t.mock.timers.enable({ apis: ["setInterval"] });
  const messages = await plane.trace(async () => {
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    const peer = await upstream.connection();
    await peer.take("\r\n\r\n");
    peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    await client.take("\r\n\r\n");
    client.send("ping");
    await peer.take("ping");
    peer.send("pong!");
    await client.take("pong!");
    pass(t);
    const [{ connections }] = plane.plane.tasks() as [{ connections: [{ exchange: object }] }];
    const { exchange } = connections[0] as { exchange: { bytesReceived: number; bytesSent: number } };
    assert.deepEqual([exchange.bytesReceived, exchange.bytesSent], [4, 5]);
    peer.socket.end();
    client.socket.end();
  });
  assert.deepEqual(progressOf(messages)[0], { received: { chunks: 1, bytes: 4 }, sent: { chunks: 1, bytes: 5 } });
  assert.equal(messages.at(-1)?.type, "requestFinished");
});

test("server-sent events over HTTP/2: the trace counts chunks while the stream lasts, beside other streams", async (t) => {
  await using upstream = await RawUpstream.listen();
  // Otherwise requests that arrive over HTTP/2 without TLS would be forwarded over HTTP/2.
  const backends = [{ host: `127.0.0.1:${upstream.port}`, policies: { http: { version: "HTTP/1.1" } } }];
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }] });
  const client = await H2Client.connect(gateway.port());
  t.mock.timers.enable({ apis: ["setInterval"] });
  const messages = await gateway.trace(async () => {
    client.request(1, "GET", [], "/events");
    const peer = await upstream.connection();
    await peer.message();
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const text of ["one", "two"]) {
      peer.send(`${(text.length + 8).toString(16)}\r\ndata: ${text}\n\n\r\n`);
      await client.until(() => client.stream(1).body.includes(text), text);
    }
    client.request(3, "GET", [], "/other");
    const second = await upstream.connection(1);
    await second.message();
    second.send(reply("x".repeat(1000)));
    assert.equal((await client.response(3)).body.length, 1000);
    pass(t);
    peer.send("d\r\ndata: three\n\n\r\n0\r\n\r\n");
    await client.response(1);
  });
  assert.deepEqual(progressOf(messages), [
    { received: { chunks: 0, bytes: 0 }, sent: { chunks: 2, bytes: 22 } },
    { received: { chunks: 0, bytes: 0 }, sent: { chunks: 3, bytes: 35 } },
  ]);
  assert.equal(messages.at(-1)?.type, "requestFinished");
  client.peer.socket.destroy();
});

test("a WebSocket over HTTP/2 (RFC 8441): both directions count, and the task dump shows the bytes of its stream", async (t) => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await H2Client.connect(plane.port);
  t.mock.timers.enable({ apis: ["setInterval"] });
  const messages = await plane.trace(async () => {
    const pseudo = [":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", "/chat"];
    client.headers(1, [...pseudo, ":authority", "a.example", "sec-websocket-version", "13"], false);
    const peer = await upstream.connection();
    const { fields } = await peer.message();
    const key = fields.find((field) => /^sec-websocket-key:/i.test(field))?.split(": ")[1] ?? "";
    const proof = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
    peer.send(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${proof}\r\n\r\n`,
    );
    await client.until(() => H2Client.status(client.stream(1)) === 200, "the opening");
    client.data(1, "ping", false);
    await peer.take("ping");
    peer.send("pong!");
    await client.until(() => client.stream(1).body === "pong!", "the answer");
    pass(t);
    const [{ connections }] = plane.plane.tasks() as [{ connections: [{ exchanges: readonly object[] }] }];
    const [exchange] = connections[0].exchanges as [{ bytesReceived: number; bytesSent: number }];
    assert.deepEqual([exchange.bytesReceived, exchange.bytesSent], [4, 5]);
    peer.socket.end();
    client.data(1, "");
  });
  assert.deepEqual(progressOf(messages)[0], { received: { chunks: 1, bytes: 4 }, sent: { chunks: 1, bytes: 5 } });
  assert.equal(messages.at(-1)?.type, "requestFinished");
  client.peer.socket.destroy();
});

function tcpTo(port: number): object {
  const backends = [{ host: `127.0.0.1:${port}` }];
  return { binds: [{ port: 0, listeners: [{ protocol: "TCP", tcpRoutes: [{ name: "echo", backends }] }] }] };
}

test("a TCP connection: route, endpoint, traffic and end are traced; the task dump shows it", async (t) => {
  await using upstream = await RawUpstream.listen();
  await using gateway = await LocalGateway.start(tcpTo(upstream.port));
  t.mock.timers.enable({ apis: ["setInterval"] });
  const messages = await gateway.trace(async () => {
    const client = await RawPeer.connect(gateway.port());
    client.send("hello");
    const peer = await upstream.connection();
    await peer.take("hello");
    peer.send("hi");
    await client.take("hi");
    pass(t);
    const [task] = gateway.tasks().flatMap(({ connections }) => connections);
    const { state, endpoint, bytesReceived, bytesSent } = task as Record<string, unknown>;
    assert.deepEqual([state, endpoint], ["copying", `127.0.0.1:${upstream.port}`]);
    assert.deepEqual([bytesReceived, bytesSent], [5, 2]);
    client.socket.end();
    peer.socket.end();
  });
  assert.deepEqual(
    messages.map(({ type }) => type),
    [
      "requestStarted",
      "requestSnapshot",
      "routeSelection",
      "backendCallStart",
      "backendCallResult",
      "streamProgress",
      "streamProgress",
      "requestFinished",
    ],
  );
  assert.deepEqual(messages[0], { type: "requestStarted", protocol: "tcp" });
  assert.ok(messages[2]?.type === "routeSelection" && messages[2].selectedRoute === "default/echo");
  assert.deepEqual(messages[3], { type: "backendCallStart", target: `127.0.0.1:${upstream.port}` });
  assert.deepEqual(progressOf(messages)[0], { received: { chunks: 1, bytes: 5 }, sent: { chunks: 1, bytes: 2 } });
  assert.deepEqual(messages.at(-1), { type: "requestFinished", status: null, error: null });
});

test("a TCP connection whose backend is down: the trace says so", async () => {
  const port = await closedPort();
  await using gateway = await LocalGateway.start(tcpTo(port));
  const messages = await gateway.trace(async () => {
    const client = await RawPeer.connect(gateway.port());
    await client.closed();
  });
  const result = messages.find(({ type }) => type === "backendCallResult");
  assert.ok(result?.type === "backendCallResult");
  assert.match(result.error ?? "", /ECONNREFUSED/);
  const end = messages.at(-1);
  assert.ok(end?.type === "requestFinished" && /ECONNREFUSED/.test(end.error ?? ""));
});

test("a trace with a duration ends before the request, which continues", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  const send = async (): Promise<void> => client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const messages = await plane.trace(send, { maxMs: 1 });
  assert.equal(messages.at(-1)?.type, "traceEnded");
  const peer = await upstream.connection();
  await peer.message();
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
  assert.equal((await client.message()).body, "done");
  client.socket.destroy();
});
