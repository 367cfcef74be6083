import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

test("one connection serves many requests, on both sides", async () => {
  await using upstream = await RawUpstream.answering((request) => reply(request.start));
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  for (let i = 0; i < 5; i++) {
    client.send(`GET /${i} HTTP/1.1\r\nHost: a\r\n\r\n`);
    const response = await client.message();
    assert.equal(response.body, `GET /${i} HTTP/1.1`);
    assert.deepEqual(valuesOf(response, "connection"), []);
  }
  assert.equal(upstream.connections.length, 1);
});

test("Connection: close ends the connection after the response, which carries it too", async () => {
  await using upstream = await RawUpstream.answering(() => reply("x"));
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  assert.deepEqual(valuesOf(await client.message(), "connection"), ["close"]);
  assert.equal(await client.closed(), "end");
});

test("1000 pipelined requests get their responses in order, errors and bodies among them", async () => {
  await using upstream = await RawUpstream.answering((request) => reply(`${request.start} ${request.body}`));
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  await using plane = await TestPlane.start([
    { path: "/up", target },
    { path: "/own", target, policies: { directResponse: { status: 418, body: "own" } } },
  ]);
  const client = await RawPeer.connect(plane.port);
  const kinds = [
    (i: number) => ({ sent: `GET /up/${i} HTTP/1.1\r\nHost: a\r\n\r\n`, body: `GET /up/${i} HTTP/1.1 ` }),
    () => ({ sent: "GET /own HTTP/1.1\r\nHost: a\r\n\r\n", body: "own" }),
    (i: number) => ({
      sent: `POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n${String(i).padStart(5)}`,
      body: `POST /up HTTP/1.1 ${String(i).padStart(5)}`,
    }),
    () => ({ sent: "GET /none HTTP/1.1\r\nHost: a\r\n\r\n", body: "route not found" }),
    () => ({ sent: "POST /own HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", body: "own" }),
    (i: number) => ({
      sent: `PUT /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n${1000 + i}\r\n0\r\n\r\n`,
      body: `PUT /up HTTP/1.1 ${1000 + i}`,
    }),
  ];
  const requests = Array.from({ length: 1000 }, (_, i) => (kinds[i % kinds.length] as (typeof kinds)[0])(i));
  client.send(requests.map((each) => each.sent).join(""));
  for (const { body } of requests) assert.equal((await client.message()).body, body);
});

test("100000 pipelined requests with responses of the gateway itself neither recurse nor pile up", async () => {
  const target = { type: "invalid", reference: "" } as const;
  await using plane = await TestPlane.start([{ target, policies: { directResponse: { status: 200, body: "ok" } } }]);
  const client = await RawPeer.connect(plane.port);
  let left = 100_000;
  client.socket.removeAllListeners("data");
  let tail = "";
  const done = new Promise<void>((resolve) => {
    client.socket.on("data", (bytes: Buffer) => {
      const text = tail + bytes.toString("latin1");
      left -= text.split("\r\n\r\nok").length - 1;
      tail = text.slice(-5);
      if (tail.endsWith("\r\n\r\nok".slice(-5))) tail = "";
      if (left === 0) resolve();
    });
  });
  client.send(GET.repeat(100_000));
  await done;
});

test("HTTP/1.0 clients: closed unless they ask, never chunked", async () => {
  await using upstream = await RawUpstream.answering((request) =>
    request.start.includes("/chunked")
      ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
      : reply("x"),
  );
  await using plane = await TestPlane.start(upstream.port);
  const plain = await RawPeer.connect(plane.port);
  plain.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
  assert.equal((await plain.message()).body, "x");
  assert.equal(await plain.closed(), "end");

  const kept = await RawPeer.connect(plane.port);
  for (let i = 0; i < 2; i++) {
    kept.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
    assert.deepEqual(valuesOf(await kept.message(), "connection"), ["keep-alive"]);
  }
  kept.send("GET /chunked HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
  const unframed = await kept.message();
  assert.deepEqual(valuesOf(unframed, "transfer-encoding"), []);
  assert.deepEqual(valuesOf(unframed, "connection"), ["close"]);
  assert.equal(unframed.body, "ab");
  assert.equal(kept.ended, "end");
});

test("a response before the end of a small body keeps the connection", async () => {
  const target = { type: "invalid", reference: "" } as const;
  await using plane = await TestPlane.start([{ target, policies: { directResponse: { status: 403, body: "no" } } }]);
  const client = await RawPeer.connect(plane.port);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
  const response = await client.message();
  assert.equal(statusOf(response), 403);
  assert.deepEqual(valuesOf(response, "connection"), []);
  client.send(`0123456789${GET}`);
  assert.equal(statusOf(await client.message()), 403);
});

test("a request on a stale pooled connection is replayed if its method is idempotent", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.send(reply("first"));
    await peer.message();
    if (upstream.connections.length === 1) peer.socket.destroy();
    else peer.send(reply("again"));
  });
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  assert.equal((await client.message()).body, "first");
  client.send(GET);
  assert.equal((await client.message()).body, "first");
  assert.equal(upstream.connections.length, 2);
});

test("a request that may not be replayed fails with 503 if its pooled connection is stale", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.send(reply("first"));
    await peer.message();
    peer.socket.destroy();
  });
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  for (const request of [
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
  ]) {
    client.send(GET);
    assert.equal((await client.message()).body, "first");
    client.send(request);
    const failed = await client.message();
    assert.equal(statusOf(failed), 503);
    assert.equal(failed.body, "upstream call failed");
  }
});

test("a connection whose upstream sends Connection: close is not reused", async () => {
  await using upstream = await RawUpstream.answering(() => reply("x", ["Connection: close"]));
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  for (let i = 0; i < 3; i++) {
    client.send(GET);
    await client.message();
  }
  assert.equal(upstream.connections.length, 3);
});

test("bytes after a response are never read as the next response", async () => {
  for (const framing of ["length", "chunked", "none"]) {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      const first =
        framing === "length"
          ? reply("good")
          : framing === "chunked"
            ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n"
            : "HTTP/1.1 204 No Content\r\n\r\n";
      peer.send(first + (upstream.connections.length === 1 ? reply("poison") : ""));
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(GET + GET);
    const expected = framing === "none" ? "" : "good";
    assert.equal((await client.message()).body, expected);
    assert.equal((await client.message()).body, expected);
    assert.equal(upstream.connections.length, 2);
  }
});
