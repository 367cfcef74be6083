import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { test } from "node:test";
import { WebSocket } from "ws";
import { webSocketAccept } from "../../../src/http/websocket.ts";
import { PROCESS, ProcessingResponse } from "../../helpers/envoy/ext-proc.ts";
import { extProcAt } from "../../helpers/envoy/processor.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { type RawPeer, RawUpstream, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";
import { DATA, END_STREAM, type Frame, HEADERS, PING, RawFrames, SETTINGS } from "./frames.ts";
import { answer, gatewayTo, H2Server, head, send } from "./support.ts";

const NO_ERROR = 0;
const INTERNAL_ERROR = 2;
/** A setting (RFC 8441 3). */
const ENABLE_CONNECT_PROTOCOL = Buffer.of(0, 8, 0, 0, 0, 1);
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const OPENING = head(
  "GET /chat?room=1 HTTP/1.1",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  `Sec-WebSocket-Key: ${KEY}`,
  "Sec-WebSocket-Protocol: chat",
);

/** A server that accepts extended CONNECT and passes each tunnel to `serve`. */
function tunnelServer(serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void): Promise<H2Server> {
  return H2Server.start(serve, { settings: { enableConnectProtocol: true } });
}

test("an HTTP/1.1 WebSocket becomes an extended CONNECT: bytes both ways, and each side ends separately", async () => {
  let seen: IncomingHttpHeaders = {};
  let received = "";
  let ended = false;
  using server = await tunnelServer((stream, headers) => {
    seen = headers;
    stream.respond({ ":status": 200, "sec-websocket-protocol": "chat" });
    stream.write("welcome ");
    stream.on("data", (bytes: Buffer) => {
      received += bytes.toString();
      stream.write(bytes);
    });
    stream.on("end", () => {
      ended = true;
      stream.end("bye");
    });
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, OPENING);
  const response = await client.take("\r\n\r\n");
  assert.match(response, /^HTTP\/1\.1 101 /);
  assert.match(response.toLowerCase(), /upgrade: websocket\r\n/);
  assert.ok(response.toLowerCase().includes(`sec-websocket-accept: ${webSocketAccept(KEY).toLowerCase()}`));
  assert.match(response.toLowerCase(), /sec-websocket-protocol: chat/);
  assert.deepEqual(
    [seen[":method"], seen[":protocol"], seen[":scheme"], seen[":path"], seen[":authority"]],
    ["CONNECT", "websocket", "http", "/chat?room=1", "shop.example"],
  );
  assert.deepEqual(
    [seen["sec-websocket-key"], seen["sec-websocket-version"], seen.upgrade, seen.connection],
    [undefined, "13", undefined, undefined],
  );
  client.send("hello");
  assert.equal(await client.take("hello"), "welcome hello");
  assert.equal(received, "hello");
  client.end();
  assert.equal(await client.take("bye"), "bye");
  await client.closed();
  assert.ok(ended);
  await until(() => plane.endpoints.stats()[0]?.pending === 0, "the end of the call");
  // The connection stays in use.
  const next = await send(plane, OPENING);
  await next.take("welcome ");
  assert.equal(server.sessions.length, 1);
  next.socket.destroy();
});

test("a real client opens one, and its connection is broken when the server resets the stream", async () => {
  let tunnel: ServerHttp2Stream | undefined;
  using server = await tunnelServer((stream) => {
    tunnel = stream;
    stream.respond({ ":status": 200 });
    stream.write(Buffer.of(0x81, 2, 0x68, 0x69));
  });
  await using plane = await gatewayTo(server.port);
  const socket = new WebSocket(`ws://127.0.0.1:${plane.port}/`);
  const [message] = (await once(socket, "message")) as [Buffer];
  assert.equal(message.toString(), "hi");
  tunnel?.close(8);
  const [code] = (await once(socket, "close")) as [number];
  assert.equal(code, 1006);
});

test("a client that disconnects cancels the tunnel", async () => {
  const gone = Promise.withResolvers<number | undefined>();
  using server = await tunnelServer((stream) => {
    stream.respond({ ":status": 200 });
    stream.on("close", () => gone.resolve(stream.rstCode));
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, OPENING);
  await client.take("\r\n\r\n");
  client.reset();
  assert.equal(await gone.promise, 8);
});

test("the response of a server that rejects the tunnel is forwarded as for any request", async () => {
  using server = await tunnelServer((stream) => {
    stream.respond({ ":status": 403 });
    stream.end("no");
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, OPENING);
  const response = await client.message();
  assert.deepEqual([statusOf(response), response.body, valuesOf(response, "upgrade")], [403, "no", []]);
  client.socket.destroy();
});

/** The server of a connection: accepts the request for a tunnel, its first stream. */
async function openTunnel(peer: RawPeer): Promise<{ readonly frames: RawFrames; readonly stream: number }> {
  const frames = new RawFrames(peer);
  await frames.begin();
  frames.send(SETTINGS, 0, 0, ENABLE_CONNECT_PROTOCOL);
  const { stream } = await frames.next(HEADERS);
  frames.respond(stream);
  return { frames, stream };
}

for (const [end, code, error] of [
  [true, NO_ERROR, undefined],
  [false, NO_ERROR, undefined],
  [true, INTERNAL_ERROR, /^upstream call failed: the upstream reset the stream: INTERNAL_ERROR/],
  [false, INTERNAL_ERROR, /^upstream call failed: the upstream reset the stream: INTERNAL_ERROR/],
] as const)
  test(`a tunnel that its server resets by ${code}, ${end ? "after its end" : "before"}`, async () => {
    await using server = await RawUpstream.listen(async (peer) => {
      const { frames, stream } = await openTunnel(peer);
      frames.send(DATA, 0, stream, Buffer.from("bye"));
      await frames.next(DATA);
      if (end) frames.send(DATA, END_STREAM, stream, Buffer.alloc(0));
      frames.reset(stream, code);
      await peer.closed();
    });
    await using plane = await gatewayTo(server.port);
    const client = await send(plane, OPENING);
    await client.take("bye");
    client.send("go");
    await client.closed();
    const line = await plane.logged("/chat");
    if (error === undefined) {
      assert.equal(line.error, undefined);
      const [{ connections: [left] = [] } = {}] = plane.plane.tasks() as [{ connections: { state: string }[] }];
      assert.equal(left?.state, "linger");
    } else assert.match(String(line.error), error);
    assert.equal(plane.endpoints.stats()[0]?.consecutiveFailures, error === undefined ? 0 : 1);
  });

test("a tunnel that ends before a policy forwards its head still arrives", async () => {
  const asked = Promise.withResolvers<void>();
  const reset = Promise.withResolvers<void>();
  await using processor = await GrpcServer.start({
    [PROCESS]: {
      stream(call) {
        call.on("error", () => {}).on("end", () => call.end());
        call.on("data", async () => {
          asked.resolve();
          await reset.promise;
          call.write(ProcessingResponse.encode({ response_headers: {} }));
        });
      },
    },
  });
  await using server = await RawUpstream.listen(async (peer) => {
    const { frames, stream } = await openTunnel(peer);
    await asked.promise;
    frames.send(DATA, END_STREAM, stream, Buffer.from("bye"));
    frames.reset(stream, NO_ERROR);
    // The acknowledgement shows that everything before it has been read.
    frames.send(PING, 0, 0, Buffer.alloc(8));
    await frames.next(PING);
    reset.resolve();
    await peer.closed();
  });
  const extProc = extProcAt(processor.port, { responseHeaderMode: "send" });
  await using plane = await gatewayTo(server.port, { policies: { extProc } });
  const client = await send(plane, OPENING);
  assert.match(await client.take("bye"), /^HTTP\/1\.1 101 /);
  await client.closed();
  assert.equal((await plane.logged("/chat")).error, undefined);
});

test("the request waits for the server's SETTINGS, which say whether it supports extended CONNECT", async () => {
  const connected = Promise.withResolvers<RawPeer>();
  const request = Promise.withResolvers<Frame>();
  const known = Promise.withResolvers<void>();
  await using server = await RawUpstream.listen(async (peer) => {
    const frames = new RawFrames(peer);
    await frames.begin();
    await peer.until(() => peer.received !== "", "the client's SETTINGS");
    connected.resolve(peer);
    await known.promise;
    frames.send(SETTINGS, 0, 0, ENABLE_CONNECT_PROTOCOL);
    request.resolve(await frames.next(HEADERS));
    await peer.closed();
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, OPENING);
  const { received } = await connected.promise;
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await connected.promise).received, received);
  known.resolve();
  assert.equal((await request.promise).flags & END_STREAM, 0);
  client.socket.destroy();
});

test("without extended CONNECT it is 502, and other requests continue", async () => {
  using server = await H2Server.start((stream) => answer(stream, "served"));
  await using plane = await gatewayTo(server.port);
  for (let i = 0; i < 2; i++) {
    const socket = await send(plane, OPENING);
    assert.equal(statusOf(await socket.message()), 502);
    socket.socket.destroy();
  }
  const client = await send(plane, head("GET / HTTP/1.1"));
  assert.equal((await client.message()).body, "served");
  assert.equal(server.sessions.length, 1);
  assert.equal(plane.endpoints.stats()[0]?.consecutiveFailures, 0);
  client.socket.destroy();
});
