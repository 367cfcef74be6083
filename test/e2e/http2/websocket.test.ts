import assert from "node:assert/strict";
import { once } from "node:events";
import type { ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocketServer } from "ws";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";
import { logged } from "../tls/support.ts";
import { NodeClient } from "./support.ts";

const OPEN = { ":method": "CONNECT", ":protocol": "websocket", ":path": "/chat", "sec-websocket-version": "13" };

function config(port: number, policies: object = {}): object {
  return { binds: [{ port: 0, listeners: [{ routes: [{ policies, backends: [{ host: `127.0.0.1:${port}` }] }] }] }] };
}

/** Waits for the gateway's settings, which announce support for extended CONNECT. */
async function open(client: NodeClient, headers: OutgoingHttpHeaders = {}): Promise<[ClientHttp2Stream, number]> {
  if (client.session.remoteSettings.enableConnectProtocol !== true) await once(client.session, "remoteSettings");
  assert.equal(client.session.remoteSettings.enableConnectProtocol, true);
  const stream = client.open({ ...OPEN, ...headers });
  const [fields] = await once(stream, "response");
  return [stream, Number(fields[":status"])];
}

/** A masked text frame of up to 125 bytes, as a client sends it (RFC 6455 5.2); with a mask of zeros. */
function textFrame(text: string): Buffer {
  return Buffer.concat([Buffer.of(0x81, 0x80 | text.length, 0, 0, 0, 0), Buffer.from(text)]);
}

/** Reads `length` bytes from the stream. */
async function take(stream: ClientHttp2Stream, length: number): Promise<Buffer> {
  for (;;) {
    const bytes = stream.read(length) as Buffer | null;
    if (bytes !== null) return bytes;
    await once(stream, "readable", { signal: AbortSignal.timeout(10_000) });
  }
}

async function webSocketServer(t: TestContext): Promise<number> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", handleProtocols: () => "chat" });
  t.after(() => server.close());
  await once(server, "listening");
  server.on("connection", (socket) => {
    socket.on("message", (data, binary) => socket.send(data, { binary }));
  });
  return (server.address() as AddressInfo).port;
}

test("a WebSocket over HTTP/2 reaches an HTTP/1.1 server and shares its connection with other requests", async (t) => {
  await using gateway = await LocalGateway.start(config(await webSocketServer(t)));
  await using client = await NodeClient.connect(gateway.port());
  const [stream, status] = await open(client, { "sec-websocket-protocol": "chat" });
  assert.equal(status, 200);
  assert.equal(stream.sentHeaders[":protocol"], "websocket");
  stream.write(textFrame("hello"));
  assert.deepEqual(await take(stream, 7), Buffer.concat([Buffer.of(0x81, 5), Buffer.from("hello")]));
  // The server rejects a request that is not an upgrade, and the connection stays in use.
  assert.equal((await client.fetch()).status, 426);
  stream.write(textFrame("again"));
  assert.equal(String((await take(stream, 7)).subarray(2)), "again");
  // Close, code 1000, which the server sends back.
  stream.write(Buffer.of(0x88, 0x82, 0, 0, 0, 0, 3, 232));
  assert.deepEqual(await take(stream, 4), Buffer.of(0x88, 2, 3, 232));
  stream.end();
  await once(stream, "close");
  assert.equal(stream.rstCode, 0);
  await logged(gateway, { "http.path": "/chat", "http.version": "HTTP/2", "http.status": 101 });
});

test("the server sees an HTTP/1.1 opening handshake with a key of the gateway", async () => {
  await using upstream = await RawUpstream.listen();
  await using gateway = await LocalGateway.start(config(upstream.port));
  await using client = await NodeClient.connect(gateway.port());
  void open(client).catch(() => {});
  const request = await (await upstream.connection()).message();
  assert.equal(request.start, "GET /chat HTTP/1.1");
  assert.deepEqual(valuesOf(request, "upgrade"), ["websocket"]);
  assert.deepEqual(valuesOf(request, "connection"), ["upgrade"]);
  assert.deepEqual(valuesOf(request, "sec-websocket-version"), ["13"]);
  assert.equal(Buffer.from(valuesOf(request, "sec-websocket-key")[0] ?? "", "base64").length, 16);
});

test("a response that does not switch cannot be mistaken for a WebSocket", async () => {
  await using upstream = await RawUpstream.answering((request) =>
    reply("text", [], request.start.includes("/denied") ? "403 Forbidden" : "200 OK"),
  );
  await using gateway = await LocalGateway.start(config(upstream.port));
  await using client = await NodeClient.connect(gateway.port());
  assert.equal((await open(client, { ":path": "/denied" }))[1], 403);
  assert.equal((await open(client))[1], 502);
  await gateway.reconfigure(config(upstream.port, { directResponse: { status: 200, body: "not a WebSocket" } }));
  assert.equal((await open(client))[1], 501);
  const other = client.open({ ...OPEN, ":protocol": "connect-udp" });
  const [fields] = await once(other, "response");
  assert.equal(fields[":status"], 501);
});

test("a reset on either side ends the other", async () => {
  for (const broken of ["client", "upstream"]) {
    await using upstream = await RawUpstream.listen();
    await using gateway = await LocalGateway.start(config(upstream.port));
    await using client = await NodeClient.connect(gateway.port());
    const opened = open(client);
    const peer = await upstream.connection();
    await peer.message();
    peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nearly");
    const [stream] = await opened;
    assert.equal(String(await take(stream, 5)), "early");
    stream.on("error", () => {});
    const closed = new Promise((resolve) => stream.on("close", resolve));
    if (broken === "client") {
      stream.close(8);
      await peer.closed();
    } else {
      peer.reset();
      await closed;
      // CANCEL (RFC 8441 5).
      assert.equal(stream.rstCode, 8);
    }
  }
});

test("CONNECT is routed over HTTP/2 as over HTTP/1.1, and each side ends separately", async () => {
  await using upstream = await RawUpstream.listen();
  await using gateway = await LocalGateway.start({
    ...config(upstream.port),
    frontendPolicies: { connect: { mode: "route" } },
  });
  await using client = await NodeClient.connect(gateway.port());
  const stream = client.open({ ":method": "CONNECT", ":authority": "a.example:443" });
  const responded = once(stream, "response");
  stream.write("up");
  const peer = await upstream.connection();
  await peer.take("up");
  const [fields] = await responded;
  assert.equal(fields[":status"], 200);
  peer.send("down");
  assert.equal(String(await take(stream, 4)), "down");
  stream.end();
  assert.equal(await peer.closed(), "end");
  peer.send("last");
  assert.equal(String(await take(stream, 4)), "last");
  peer.end();
  await once(stream, "close");
  assert.equal(stream.rstCode, 0);
});

test("on a port of tunnels, each stream is a tunnel", async () => {
  await using upstream = await RawUpstream.answering((request) => reply(request.start));
  const inner = (port: number): object => ({
    port,
    mode: "internal",
    listeners: [{ routes: [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }] }],
  });
  await using gateway = await LocalGateway.start({
    binds: [{ port: 0, tunnelProtocol: "connect", listeners: [{ routes: [] }] }, inner(8081)],
  });
  await using client = await NodeClient.connect(gateway.port("bind/0"));
  const tunnels = [
    client.open({ ":method": "CONNECT", ":authority": "a:8081" }),
    client.open({ ":method": "CONNECT", ":authority": "b:8081" }),
  ];
  for (const [i, stream] of tunnels.entries()) stream.write(`GET /${i} HTTP/1.1\r\nHost: a\r\n\r\n`);
  for (const [i, stream] of tunnels.entries()) {
    let text = "";
    while (!text.endsWith(`GET /${i} HTTP/1.1`)) text += String(await take(stream, 1));
    stream.end();
  }
});
