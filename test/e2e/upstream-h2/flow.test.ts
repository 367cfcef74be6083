import assert from "node:assert/strict";
import type { ServerHttp2Stream } from "node:http2";
import { test } from "node:test";
import { setMemoryShort } from "../../../src/net/frugality.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";
import { answer, gatewayTo, H2Server, head, send } from "./support.ts";

const MIB = 1024 * 1024;

/** Writes `size` bytes as fast as they are accepted; returns how many have been written so far. */
function pour(stream: ServerHttp2Stream, size: number): () => number {
  const piece = Buffer.alloc(64 * 1024, "x");
  let given = 0;
  const go = (): void => {
    while (given < size) {
      given += piece.length;
      if (!stream.write(piece)) {
        stream.once("drain", go);
        return;
      }
    }
    stream.end();
  };
  go();
  return () => given;
}

test("a client that does not read slows down the server, and no other client; later it gets everything", async () => {
  let given = (): number => 0;
  using server = await H2Server.start((stream, { ":path": path }) => {
    if (path === "/small") return answer(stream, "small");
    stream.respond({ ":status": 200 });
    given = pour(stream, 32 * MIB);
  });
  await using plane = await gatewayTo(server.port);
  const slow = await send(plane, head("GET /large HTTP/1.1"));
  slow.socket.pause();
  let before = -1;
  await until(() => {
    const stalled = given() > 0 && given() === before;
    before = given();
    return stalled;
  }, "the server to be held back");
  // What the system's buffers and the windows hold; without limits it would be everything.
  assert.ok(given() < 24 * MIB, `${given()} bytes`);
  for (let i = 0; i < 5; i++) {
    const other = await send(plane, head("GET /small HTTP/1.1"));
    assert.equal((await other.message()).body, "small");
    other.socket.destroy();
  }
  assert.equal(server.sessions.length, 1);
  let received = 0;
  slow.socket.removeAllListeners("data");
  slow.socket.on("data", (bytes: Buffer) => {
    received += bytes.length;
  });
  slow.socket.resume();
  await until(() => received > 32 * MIB, "all of the body");
  slow.socket.destroy();
});

test("a server that does not read slows down the client; later it gets everything", async () => {
  let upload: ServerHttp2Stream | undefined;
  let received = 0;
  using server = await H2Server.start((stream) => {
    upload = stream;
    stream.pause();
    stream.on("data", (bytes: Buffer) => {
      received += bytes.length;
    });
    stream.pause();
    stream.on("end", () => {
      stream.respond({ ":status": 200 });
      stream.end(String(received));
    });
  });
  await using plane = await gatewayTo(server.port);
  const size = 32 * MIB;
  const client = await send(plane, head("POST / HTTP/1.1", `Content-Length: ${size}`));
  const piece = Buffer.alloc(64 * 1024, "x");
  let given = 0;
  const pump = (): void => {
    while (given < size) {
      given += piece.length;
      if (!client.socket.write(piece)) {
        client.socket.once("drain", pump);
        return;
      }
    }
  };
  pump();
  let before = -1;
  await until(() => {
    const stalled = upload !== undefined && given === before;
    before = given;
    return stalled;
  }, "the client to be held back");
  assert.ok(given < 24 * MIB, `${given} bytes`);
  upload?.resume();
  assert.equal((await client.message()).body, String(size));
  client.socket.destroy();
});

test("bytes arrive unchanged, both ways", async () => {
  using server = await H2Server.start((stream) => {
    stream.respond({ ":status": 200 });
    stream.pipe(stream);
  });
  await using plane = await gatewayTo(server.port);
  const bytes = Buffer.from(Array.from({ length: 3 * MIB }, (_, i) => (i * 31 + (i >> 8)) & 255));
  const response = await fetch(`http://127.0.0.1:${plane.port}/`, { method: "POST", body: bytes });
  assert.ok(Buffer.from(await response.arrayBuffer()).equals(bytes));
});

test("1000 concurrent requests share a few connections, none of which gets more streams than allowed", async () => {
  using server = await H2Server.start((stream, { ":path": path }) => answer(stream, `${path}`), {
    settings: { maxConcurrentStreams: 50 },
  });
  await using plane = await gatewayTo(server.port);
  const paths = Array.from({ length: 1000 }, (_, i) => `/${i}`);
  const clients = await Promise.all(paths.map((path) => send(plane, head(`GET ${path} HTTP/1.1`))));
  const bodies = await Promise.all(clients.map(async (client) => (await client.message()).body));
  assert.deepEqual(bodies, paths);
  assert.ok(server.busiest <= 50, `${server.busiest} streams`);
  assert.ok(server.sessions.length <= 21, `${server.sessions.length} connections`);
  for (const { socket } of clients) socket.destroy();
  assert.equal(plane.endpoints.stats()[0]?.pending, 0);
});

test("a server that allows one stream at a time gets one on each of as many connections as needed", async () => {
  const waiting: (() => void)[] = [];
  using server = await H2Server.start((stream) => waiting.push(() => answer(stream, "ok")), {
    settings: { maxConcurrentStreams: 1 },
  });
  await using plane = await gatewayTo(server.port);
  const clients = await Promise.all(Array.from({ length: 8 }, () => send(plane, head("GET / HTTP/1.1"))));
  await until(() => waiting.length === 8, "all requests");
  assert.deepEqual([server.busiest, server.sessions.length], [1, 8]);
  for (const go of waiting.splice(0)) go();
  for (const client of clients) assert.equal(statusOf(await client.message()), 200);
  await until(() => plane.endpoints.stats()[0]?.pending === 0, "the end");
  const next = await send(plane, head("GET / HTTP/1.1"));
  await until(() => waiting.length === 1, "another request");
  waiting.pop()?.();
  assert.equal(statusOf(await next.message()), 200);
  assert.equal(server.sessions.length, 8);
  for (const peer of [...clients, next]) peer.socket.destroy();
});

test("idle connections are closed after a time, and at once if there are too many", async () => {
  const waiting: (() => void)[] = [];
  using server = await H2Server.start((stream) => waiting.push(() => answer(stream, "ok")), {
    settings: { maxConcurrentStreams: 1 },
  });
  await using plane = await gatewayTo(server.port, { pool: { idleTimeout: 300, maxIdle: 2 } });
  const clients = await Promise.all(Array.from({ length: 4 }, () => send(plane, head("GET / HTTP/1.1"))));
  await until(() => waiting.length === 4, "all requests");
  for (const go of waiting) go();
  for (const client of clients) assert.equal(statusOf(await client.message()), 200);
  await until(() => server.open <= 2, "only two connections");
  await until(() => server.open === 0, "no connection");
  for (const { socket } of clients) socket.destroy();
});

test("a reload that removes the backend closes its connection after the last response", async () => {
  let go: (() => void) | undefined;
  using server = await H2Server.start((stream) => {
    go = () => answer(stream, "late");
  });
  await using plane = await gatewayTo(server.port);
  const client = await RawPeer.connect(plane.port);
  client.send(head("GET / HTTP/1.1"));
  await until(() => go !== undefined, "the call");
  await plane.configure([]);
  go?.();
  assert.equal((await client.message()).body, "late");
  await until(() => server.open === 0, "the end of the connection");
  client.socket.destroy();
});

test("requests wait, on few connections, for a server that allows no streams at present", async () => {
  using server = await H2Server.start((stream) => answer(stream, "now"), { settings: { maxConcurrentStreams: 0 } });
  await using plane = await gatewayTo(server.port);
  const clients = await Promise.all(Array.from({ length: 3 }, () => send(plane, head("POST / HTTP/1.1"))));
  await until(() => server.sessions.length === 3 && plane.endpoints.stats()[0]?.pending === 3, "the calls");
  const [session] = server.sessions;
  await until(() => session?.pendingSettingsAck === false, "the client to know the limit");
  session?.settings({ maxConcurrentStreams: 10 });
  for (const client of clients) assert.equal((await client.message()).body, "now");
  assert.equal(server.sessions.length, 3);
  for (const { socket } of clients) socket.destroy();
});

test("while memory is short, the first response of a new connection arrives completely", async (t) => {
  t.after(() => setMemoryShort(false));
  setMemoryShort(true);
  using server = await H2Server.start((stream) => answer(stream, "x".repeat(MIB)));
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("GET / HTTP/1.1"));
  assert.equal((await client.message()).body.length, MIB);
  client.socket.destroy();
});
