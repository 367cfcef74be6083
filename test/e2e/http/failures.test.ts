import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { constants } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import {
  closedPort,
  queueOf,
  RawPeer,
  RawUpstream,
  reply,
  settled,
  statusOf,
  valuesOf,
} from "../../helpers/raw-peer.ts";
import { unreachable } from "../../helpers/unreachable.ts";
import { until } from "../../helpers/until.ts";
import { NodeClient } from "../http2/support.ts";

const GET = "GET /it HTTP/1.1\r\nHost: a\r\n\r\n";

test("a refused connection is 503; the address and the system's reason are in the log only", async () => {
  const port = await closedPort();
  await using plane = await TestPlane.start(port);
  const response = await RawPeer.ask(plane.port, GET);
  assert.equal(statusOf(response), 503);
  assert.equal(response.body, "upstream call failed");
  const { error } = await plane.logged("/it");
  assert.equal(error, `upstream call failed: connect ECONNREFUSED 127.0.0.1:${port}`);
  assert.deepEqual(valuesOf(response, "content-type"), ["text/plain"]);
});

test("names are resolved, and all their addresses are tried", async () => {
  await using upstream = await RawUpstream.answering((request) => reply(valuesOf(request, "host").join()));
  const target = { type: "static", host: "localhost", port: upstream.port } as const;
  await using plane = await TestPlane.start([{ target }]);
  // `localhost` may also have an IPv6 address, where nothing listens; the first address is tried first.
  for (let i = 0; i < 4; i++) {
    const response = await RawPeer.ask(plane.port, GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    assert.equal(response.body, `localhost:${upstream.port}`);
  }
});

test("a name without an address is 503, and the log says so", async () => {
  const target = { type: "static", host: "no-such-name.invalid", port: 80 } as const;
  await using plane = await TestPlane.start([{ target }]);
  const response = await RawPeer.ask(plane.port, GET);
  assert.equal(statusOf(response), 503);
  assert.equal(response.body, "backends required DNS resolution which failed");
  assert.match(String((await plane.logged("/it")).error), /no-such-name\.invalid/);
});

test("a connection that is not established in time is 504", async () => {
  await using blocked = await unreachable();
  await using plane = await TestPlane.start(blocked.port, { pool: { connectTimeout: 100 } });
  const response = await RawPeer.ask(plane.port, GET);
  assert.equal(statusOf(response), 504);
  assert.equal(response.body, "upstream call timeout");
});

test("upstreams on a unix socket", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tracegate-unix-"));
  const path = join(folder, "socket");
  await using upstream = await RawUpstream.answering(() => reply("unix"), path);
  await using plane = await TestPlane.start([{ target: { type: "unix", path } }]);
  assert.equal((await RawPeer.ask(plane.port, GET)).body, "unix");
  assert.equal(upstream.connections.length, 1);
  assert.equal((await plane.logged("/it")).endpoint, `unix:${path}`);
  await rm(folder, { recursive: true });
});

for (const [what, bytes, reason] of [
  ["garbage", "SSH-2.0-OpenSSH_9.6\r\n", /it does not begin with HTTP/],
  ["another version", "HTTP/2.0 200 OK\r\n\r\n", /status line is not HTTP/],
  [
    "both lengths",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    /Content-Length together/,
  ],
  ["a head too large", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(70_000)}\r\n\r\n`, /too large/],
  ["no end of interim responses", "HTTP/1.1 102 Processing\r\n\r\n".repeat(40), /too many 1xx/],
] as const)
  test(`an upstream that sends ${what} is 503 and loses its connection`, async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.send(bytes);
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(GET);
    let response = await client.message();
    while (statusOf(response) === 102) response = await client.message();
    assert.equal(statusOf(response), 503);
    assert.equal(response.body, "upstream call failed");
    assert.match(String((await plane.logged("/it")).error), reason);
    await upstream.connections[0]?.closed();
  });

test("an upstream that closes without a response is 503", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.end();
  });
  await using plane = await TestPlane.start(upstream.port);
  const response = await RawPeer.ask(plane.port, GET);
  assert.equal(response.body, "upstream call failed");
  assert.equal((await plane.logged("/it")).error, "upstream call failed: the upstream closed the connection");
});

for (const [framing, head, request] of [
  ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", GET],
  ["chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", GET],
  ["the close", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", null],
] as const)
  test(`a body that the upstream cuts off is incomplete for the client too: delimited by ${framing}`, async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.send(framing === "the close" ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n" : head);
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(request ?? "GET /it HTTP/1.0\r\nHost: a\r\n\r\n");
    await client.take("part");
    upstream.connections[0]?.reset();
    const how = await client.closed();
    if (framing === "the close") assert.equal(how, "reset");
    assert.ok(!client.received.includes("0\r\n\r\n"));
    assert.match(String((await plane.logged("/it")).error), /^upstream call failed/);
  });

test("when the client leaves, the upstream sees it at once", async (t) => {
  const endings = { close: (peer: RawPeer) => peer.socket.destroy(), reset: (peer: RawPeer) => peer.reset() };
  for (const [how, leave] of Object.entries(endings)) {
    await t.test(`while it answers nothing: ${how}`, async () => {
      await using upstream = await RawUpstream.listen();
      await using plane = await TestPlane.start(upstream.port);
      const client = await RawPeer.connect(plane.port);
      client.send(GET);
      const peer = await upstream.connection();
      await peer.message();
      leave(client);
      await peer.closed();
      assert.equal((await plane.logged("/it")).error, "client closed the connection");
    });
    await t.test(`while the body streams up: ${how}`, async () => {
      await using upstream = await RawUpstream.listen();
      await using plane = await TestPlane.start(upstream.port);
      const client = await RawPeer.connect(plane.port);
      client.send("POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart");
      const peer = await upstream.connection();
      await peer.take("part");
      leave(client);
      await peer.closed();
      await plane.logged("/it");
    });
    await t.test(`while the body streams down: ${how}`, async () => {
      await using upstream = await RawUpstream.listen();
      await using plane = await TestPlane.start(upstream.port);
      const client = await RawPeer.connect(plane.port);
      client.send(GET);
      const peer = await upstream.connection();
      await peer.message();
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
      await client.take("part");
      leave(client);
      await peer.closed();
      await plane.logged("/it");
    });
  }
});

test("a client that leaves while its body waits for the upstream is detected", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tracegate-unix-"));
  t.after(() => rm(folder, { recursive: true }));
  for (const [how, size, leave] of [
    ["reset", 50_000_000, (client: RawPeer) => client.reset()],
    // A Unix socket buffers little: the gateway has all that the client has sent.
    ["close", 288 * 1024, (client: RawPeer) => client.socket.destroy()],
  ] as const)
    await t.test(how, async () => {
      const path = join(folder, how);
      await using upstream = await RawUpstream.listen(undefined, path);
      await using plane = await TestPlane.start([{ target: { type: "unix", path } }]);
      const client = await RawPeer.connect(plane.port);
      client.send("POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
      const peer = await upstream.connection();
      peer.socket.pause();
      client.send(Buffer.alloc(size, "x"));
      await settled(() => queueOf(client));
      leave(client);
      assert.equal((await plane.logged("/it")).error, "client closed the connection");
      peer.socket.resume();
      await peer.closed();
    });
});

test("a client that leaves while the connection is being established ends the attempt", async () => {
  await using blocked = await unreachable();
  await using plane = await TestPlane.start(blocked.port);
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  await until(() => plane.endpoints.stats()[0]?.pending === 1);
  client.socket.destroy();
  assert.equal((await plane.logged("/it")).error, "client closed the connection");
  assert.equal(plane.endpoints.stats()[0]?.pending, 0);
});

for (const [what, head] of [
  ["a body", "POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n"],
  ["requests behind it", GET],
] as const)
  test(`a client that resets the connection with ${what} unread, while there is no upstream, is detected`, async () => {
    await using blocked = await unreachable();
    await using plane = await TestPlane.start(blocked.port, { pool: { connectTimeout: 60_000 } });
    const client = await RawPeer.connect(plane.port);
    client.send(head);
    client.send(Buffer.alloc(50_000_000, "x"));
    await settled(() => queueOf(client));
    client.reset();
    assert.equal((await plane.logged("/it")).error, "client closed the connection");
    assert.equal(plane.endpoints.stats()[0]?.pending, 0);
  });

test("a response that comes before the request is complete reaches the client, and both sides end", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.take("\r\n\r\n");
    peer.send(reply("enough", [], "413 Content Too Large"));
  });
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n${"x".repeat(500_000)}`);
  const response = await client.message();
  assert.equal(statusOf(response), 413);
  assert.equal(response.body, "enough");
  assert.deepEqual(valuesOf(response, "connection"), ["close"]);
  await upstream.connections[0]?.closed();
});

test("a slow client slows down the upstream instead of filling memory", async () => {
  const size = 64 * 1024 * 1024;
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
    peer.send(Buffer.alloc(size, "x"));
  });
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.socket.removeAllListeners("data");
  client.send(GET);
  const peer = await upstream.connection();
  // The client does not read: the number of bytes that wait at the upstream stops changing.
  client.socket.pause();
  await settled(() => peer.socket.writableLength + peer.socket.bytesWritten + queueOf(peer));
  assert.ok(queueOf(peer) > size / 2, `${queueOf(peer)} bytes wait at the upstream`);
  let got = 0;
  client.socket.on("data", (bytes: Buffer) => {
    got += bytes.length;
  });
  client.socket.resume();
  await until(() => got >= size);
});

test("a slow upstream slows down the client instead of filling memory", async () => {
  const size = 64 * 1024 * 1024;
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`);
  const peer = await upstream.connection();
  peer.socket.removeAllListeners("data");
  peer.socket.pause();
  client.send(Buffer.alloc(size, "x"));
  await settled(() => queueOf(client));
  assert.ok(queueOf(client) > size / 2, `${queueOf(client)} bytes wait at the client`);
  let got = 0;
  peer.socket.on("data", (bytes: Buffer) => {
    got += bytes.length;
  });
  peer.socket.resume();
  await until(() => got >= size);
});

suite("a client that leaves is counted and logged with its own reason, in every phase", () => {
  const phases = {
    "a policy reads the body": { body: true, answer: "" },
    "the backend has not responded": { body: false, answer: "" },
    "the response is on its way": { body: false, answer: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf" },
  };
  for (const [what, { body, answer }] of Object.entries(phases))
    for (const version of ["HTTP/1.1", "HTTP/2"] as const)
      test(`${version}: ${what}`, async () => {
        await using upstream = await RawUpstream.listen(async (peer) => {
          if (answer !== "") peer.send(answer);
        });
        const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
        const reading = { transformations: { request: { set: { "x-size": "string(size(request.body))" } } } };
        await using plane = await TestPlane.start([{ target, policies: body ? reading : {} }]);
        const begun = () => until(() => plane.metrics.inFlight.count === 1);
        if (version === "HTTP/1.1") {
          const client = await RawPeer.connect(plane.port);
          client.send(body ? "POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf" : GET);
          if (answer === "") await begun();
          else await until(() => client.received.endsWith("half"));
          client.socket.destroy();
        } else {
          await using client = await NodeClient.connect(plane.port);
          const stream = client.open({ ":path": "/it", ":method": body ? "POST" : "GET" }, !body);
          stream.on("error", () => {});
          if (body) stream.write("half");
          if (answer === "") await begun();
          else await once(stream, "data");
          stream.close(constants.NGHTTP2_CANCEL);
        }
        const line = await plane.logged("/it");
        const status = answer === "" ? 0 : 200;
        assert.deepEqual([line["http.status"], line.reason], [status, "ClientGone"]);
        const counted = plane.metrics.snapshot().requests_total?.map(({ labels }) => labels.slice(3, 5));
        assert.deepEqual(counted, [[String(status), "ClientGone"]]);
      });
});
