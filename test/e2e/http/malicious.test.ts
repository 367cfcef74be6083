import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

// Known attacks of clients and upstreams on other gateways, by name.
const GET = "GET /it HTTP/1.1\r\nHost: a\r\n\r\n";
const SECOND = "GET /second HTTP/1.1\r\nHost: a\r\n\r\n";

suite("clients", () => {
  test("h2c smuggling: an upgrade to HTTP/2 does not reach the upstream, and the bytes after it are read as requests", async () => {
    const starts: string[] = [];
    await using upstream = await RawUpstream.answering(({ start, fields }) => {
      starts.push(start);
      assert.ok(!fields.some((field) => /^(upgrade|connection|http2-settings):/i.test(field)), fields.join());
      return reply("plain");
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    const fields = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk";
    client.send(`GET /it HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n${SECOND}`);
    for (let i = 0; i < 2; i++) assert.equal((await client.message()).body, "plain");
    assert.deepEqual(starts, ["GET /it HTTP/1.1", "GET /second HTTP/1.1"]);
  });

  test("a rejected upgrade: bytes sent in advance are the next request, not the new protocol", async () => {
    const starts: string[] = [];
    await using upstream = await RawUpstream.answering(({ start }) => {
      starts.push(start);
      return reply("no");
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(`GET /it HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n${SECOND}`);
    for (let i = 0; i < 2; i++) assert.equal((await client.message()).body, "no");
    assert.deepEqual(starts, ["GET /it HTTP/1.1", "GET /second HTTP/1.1"]);
  });

  test("fields that Connection names are removed, those that a policy sets for the upstream stay", async () => {
    const heads: (readonly string[])[] = [];
    await using upstream = await RawUpstream.answering(({ fields }) => {
      heads.push(fields);
      return reply("x");
    });
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const requestHeaderModifier = { set: { "x-user": "known" } };
    await using plane = await TestPlane.start([{ target, policies: { requestHeaderModifier } }]);
    const client = await RawPeer.connect(plane.port);
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: x-user, x-other\r\nX-User: forged\r\nX-Other: 1\r\n\r\n");
    await client.message();
    const names = heads[0]?.filter((field) => field.startsWith("x-"));
    assert.deepEqual(names, ["x-user: known"]);
  });

  for (const [what, end] of [
    ["trailers too large", `0\r\nX: ${"x".repeat(70_000)}\r\n\r\n`],
    ["trailers without end", `0\r\n${"X: x\r\n".repeat(20_000)}`],
    ["extensions without end", `1;${"a=b;".repeat(20_000)}`],
    ["a chunk size of 17 digits", "10000000000000000\r\n"],
    ["a chunk size in decimal sign", "+1\r\nx\r\n0\r\n\r\n"],
    ["a chunk that is longer than its size", "1\r\nxx\r\n0\r\n\r\n"],
    ["LF alone after a chunk size", "1\nx\r\n0\r\n\r\n"],
    ["a length in the trailers", "0\r\nContent-Length: 5\r\n\r\n"],
  ])
    test(`${what}: 400, the connection ends, and no bytes are read as another request`, async () => {
      const starts: string[] = [];
      await using upstream = await RawUpstream.answering(({ start }) => {
        starts.push(start);
        return reply("next");
      });
      await using plane = await TestPlane.start(upstream.port);
      const client = await RawPeer.connect(plane.port);
      client.send(`POST /it HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${end}${SECOND}`);
      assert.equal(statusOf(await client.message()), 400);
      await client.closed();
      // The connection to the upstream was made for it: it has ended, or nothing has been written to it.
      await upstream.connection();
      const next = await RawPeer.connect(plane.port);
      next.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
      assert.equal((await next.message()).body, "next");
      assert.deepEqual(starts, ["GET /next HTTP/1.1"]);
    });
});

suite("upstreams", () => {
  /** One exchange with an upstream that responds with `bytes` on its first connection, and with `second` on others. */
  async function exchange(bytes = "", method = "GET") {
    let connections = 0;
    const upstream = await RawUpstream.listen(async (peer) => {
      const answer = connections++ === 0 ? bytes : reply("second");
      for (;;) {
        await peer.message();
        peer.send(answer);
      }
    });
    const plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(`${method} /it HTTP/1.1\r\nHost: a\r\n\r\n`);
    return { upstream, plane, client };
  }

  for (const [what, bytes] of [
    ["201 fields", `HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(201)}Content-Length: 0\r\n\r\n`],
    ["an interim response too many", `${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(33)}${reply("late")}`],
    ["two different lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"],
    ["a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx"],
    ["a length with sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx"],
    ["a coding that is not last chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n"],
    ["a coding on HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a folded field", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n"],
    ["CR in a value", "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n"],
    ["NUL in a value", "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n"],
    ["a body with an interim response", "HTTP/1.1 103 X\r\nContent-Length: 5\r\n\r\nhello"],
    ["a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"],
  ])
    test(`${what}: 503, and the connection is not reused`, async () => {
      const { upstream, plane, client } = await exchange(bytes);
      await using _upstream = upstream;
      await using _plane = plane;
      let response = await client.message();
      while (statusOf(response) < 200) response = await client.message();
      assert.equal(statusOf(response), 503);
      await upstream.connections[0]?.closed();
    });

  for (const [what, method, bytes] of [
    ["bytes after a 204", "GET", `HTTP/1.1 204 No Content\r\n\r\n${reply("poison")}`],
    ["a coded 204", "GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n6\r\npoison\r\n0\r\n\r\n"],
    ["a body of a 304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\npoison"],
    ["a body in answer to HEAD", "HEAD", reply("poison")],
    ["a second response", "GET", `${reply("first")}${reply("poison")}`],
    [
      "a response after chunks",
      "GET",
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${reply("poison")}`,
    ],
  ] as const)
    test(`response queue poisoning, ${what}: the next request gets its own response`, async () => {
      const { upstream, plane, client } = await exchange(bytes, method);
      await using _upstream = upstream;
      await using _plane = plane;
      await client.message(method === "HEAD");
      await upstream.connections[0]?.closed();
      client.send(GET);
      assert.equal((await client.message()).body, "second");
    });

  test("a response is never read from bytes that arrived before its request", async () => {
    const { upstream, plane, client } = await exchange(reply("first"));
    await using _upstream = upstream;
    await using _plane = plane;
    assert.equal((await client.message()).body, "first");
    const [idle] = upstream.connections;
    idle?.send(reply("poison"));
    await idle?.closed();
    client.send(GET);
    assert.equal((await client.message()).body, "second");
  });

  test("trailers that are too large abort the response instead of completing it", async () => {
    const chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
    const { upstream, plane, client } = await exchange(`${chunk}X: ${"x".repeat(70_000)}\r\n\r\n`);
    await using _upstream = upstream;
    await using _plane = plane;
    await client.closed();
    assert.ok(!client.received.includes("0\r\n\r\n"));
    assert.match(String((await plane.logged("/it")).error), /trailers are too long/);
  });

  test("Connection of a response removes the fields that it names, but not those of its framing", async () => {
    const { upstream, plane, client } = await exchange(
      "HTTP/1.1 200 OK\r\nConnection: x-hop, close\r\nX-Hop: 1\r\nX-End: 2\r\nContent-Length: 2\r\n\r\nok",
    );
    await using _upstream = upstream;
    await using _plane = plane;
    const response = await client.message();
    assert.equal(response.body, "ok");
    assert.deepEqual([valuesOf(response, "x-hop"), valuesOf(response, "x-end")], [[], ["2"]]);
    await upstream.connections[0]?.closed();
  });
});
