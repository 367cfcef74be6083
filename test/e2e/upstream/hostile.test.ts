import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { type RawMessage, RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { DATA, END_HEADERS, END_STREAM, HEADERS, rawServer } from "../upstream-h2/frames.ts";

const GET = "GET /it HTTP/1.1\r\nHost: a\r\n\r\n";

/** The response to a GET and the call in its trace; interim responses are skipped. */
async function ask(plane: TestPlane) {
  const client = await RawPeer.connect(plane.port);
  let response: RawMessage | undefined;
  const messages = await plane.trace(async () => {
    client.send(GET);
    do response = await client.message();
    while (statusOf(response) < 200);
  });
  client.socket.destroy();
  assert.ok(response !== undefined);
  const results = messages.filter((each) => each.type === "backendCallResult");
  assert.equal(results.length, 1);
  const [{ status, error } = { status: undefined, error: undefined }] = results;
  return { response, status, error: String(error) };
}

suite("HTTP/1.1: malformed heads are 503, the trace says why, and the connection is closed", () => {
  for (const [what, bytes, reason] of [
    ["bare LF throughout", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "LF without CR"],
    ["a bare LF after the status line", "HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nok", "status line"],
    ["a bare LF in the fields", "HTTP/1.1 200 OK\r\nX: y\nContent-Length: 2\n\nok", "LF without CR"],
    ["a bare CR", "HTTP/1.1 200 OK\rContent-Length: 2\r\r", "CR without LF"],
    ["a NUL", "HTTP/1.1 200 OK\r\nX: \0", "control character"],
    ["status 99", "HTTP/1.1 99 Early\r\nContent-Length: 0\r\n\r\n", "status line"],
    ["status 099", "HTTP/1.1 099 Early\r\nContent-Length: 0\r\n\r\n", "status is not between 100 and 599"],
    ["status 600", "HTTP/1.1 600 Late\r\nContent-Length: 0\r\n\r\n", "status is not between 100 and 599"],
    ["status 999", "HTTP/1.1 999 Late\r\nContent-Length: 0\r\n\r\n", "status is not between 100 and 599"],
    ["status 1000", "HTTP/1.1 1000 Late\r\nContent-Length: 0\r\n\r\n", "status line"],
    ["status -200", "HTTP/1.1 -200 OK\r\nContent-Length: 0\r\n\r\n", "status line"],
    ["garbage", "\x16\x03\x01\x02\x00", "does not begin with HTTP/1.x"],
    ["HTTP/0.9", "<html>", "does not begin with HTTP/1.x"],
    ["a head too long", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(70_000)}`, "too large"],
    ["too many fields", `HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(300)}\r\n`, "too many header fields"],
    [
      "two Content-Length",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
      "more than one Content",
    ],
    ["a Content-Length list", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", "not one decimal number"],
    ["a negative Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not one decimal number"],
    ["both lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", "together"],
    ["a folded field", "HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 0\r\n\r\n", "folded"],
    ["a field without a colon", "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 0\r\n\r\n", "without a colon"],
    ["a bad head after a 1xx", "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\nX: y\n\n", "LF without CR"],
  ] as const)
    test(what, async () => {
      await using upstream = await RawUpstream.listen(async (peer) => {
        await peer.message();
        peer.send(bytes);
      });
      await using plane = await TestPlane.start(upstream.port);
      const { response, status, error } = await ask(plane);
      assert.deepEqual([statusOf(response), response.body], [503, "upstream call failed"]);
      assert.deepEqual([status, error.includes(reason)], [null, true], error);
      await (await upstream.connection()).closed();
    });

  test("a head that arrives byte by byte is rejected at its first bare LF", async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      for (const byte of "HTTP/1.1 200 OK\n") {
        peer.send(byte);
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    await using plane = await TestPlane.start(upstream.port);
    const { response } = await ask(plane);
    assert.equal(statusOf(response), 503);
  });
});

suite("HTTP/1.1: malformed chunked bodies end the client's connection instead of hanging or looking complete", () => {
  for (const [what, body] of [
    ["bare LF after the size", "2\nok\n0\n\n"],
    ["bare LF at the end", "2\r\nok\r\n0\n\n"],
    ["no CRLF after the data", "2\r\nokxx0\r\n\r\n"],
    ["a size that is not a number", "zz\r\nok\r\n0\r\n\r\n"],
    ["a negative size", "-2\r\nok\r\n0\r\n\r\n"],
    ["a huge size", "ffffffffffffffffff\r\nok"],
    ["trailers with bare LF", "2\r\nok\r\n0\r\nX: y\n\n"],
  ] as const)
    test(what, async () => {
      await using upstream = await RawUpstream.listen(async (peer) => {
        await peer.message();
        peer.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
      });
      await using plane = await TestPlane.start(upstream.port);
      const client = await RawPeer.connect(plane.port);
      client.send(GET);
      await client.closed();
      assert.doesNotMatch(client.received, /\r\n0\r\n/);
      assert.match(String((await plane.logged("/it")).error), /^upstream call failed: invalid response: /);
      await (await upstream.connection()).closed();
    });
});

suite("HTTP/1.1: fields and bodies that a response must not have do not reach the client", () => {
  test("a 1xx loses Content-Length and Transfer-Encoding; the final response is whole", async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 5\r\n\r\n");
      peer.send("HTTP/1.1 103 Early Hints\r\nLink: </b>\r\nTransfer-Encoding: chunked\r\n\r\n");
      peer.send(reply("whole"));
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(GET);
    for (const link of ["</a>", "</b>"]) {
      const hints = await client.message(true);
      assert.deepEqual(
        [
          statusOf(hints),
          valuesOf(hints, "link"),
          valuesOf(hints, "content-length"),
          valuesOf(hints, "transfer-encoding"),
        ],
        [103, [link], [], []],
      );
    }
    assert.equal((await client.message()).body, "whole");
    client.socket.destroy();
  });

  test("a 101 loses Content-Length", async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 0\r\n\r\n");
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    const switched = await client.message();
    assert.deepEqual([statusOf(switched), valuesOf(switched, "content-length")], [101, []]);
    client.socket.destroy();
  });

  test("the body of a 204 is not the response to the next request", async () => {
    for (const [announced, body] of [
      ["Content-Length: 5", "hello"],
      ["Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"],
    ] as const) {
      await using upstream = await RawUpstream.listen(async (peer) => {
        const { start } = await peer.message();
        if (!start.includes("/empty")) {
          peer.send(reply("mine"));
          return;
        }
        peer.send(`HTTP/1.1 204 No Content\r\n${announced}\r\n\r\n`);
        await peer.closed();
        peer.send(body);
      });
      await using plane = await TestPlane.start(upstream.port);
      const client = await RawPeer.connect(plane.port);
      client.send("GET /empty HTTP/1.1\r\nHost: a\r\n\r\n");
      const empty = await client.message();
      assert.deepEqual([statusOf(empty), valuesOf(empty, "content-length")], [204, []]);
      client.send(GET);
      assert.equal((await client.message()).body, "mine");
      assert.equal(upstream.connections.length, 2);
      client.socket.destroy();
    }
  });
});

suite("HTTP/2", () => {
  const policies = { http: { version: "HTTP/2.0" } } as const;
  const route = (port: number) => [
    { target: { type: "static", host: "127.0.0.1", port } as const, backendPolicies: policies },
  ];
  /** HPACK: a literal field without indexing. */
  const field = (name: string, value: string): Buffer =>
    Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);

  for (const status of ["99", "099", "600", "999", "1000", "-200", "abc", ""])
    test(`status ${JSON.stringify(status)} is 503`, async () => {
      await using server = await rawServer(async (frames) => {
        const { stream } = await frames.next(HEADERS);
        frames.send(HEADERS, END_HEADERS | END_STREAM, stream, field(":status", status));
        await frames.peer.closed();
      });
      await using plane = await TestPlane.start(route(server.port));
      const { response, status: traced, error } = await ask(plane);
      assert.deepEqual([statusOf(response), response.body, traced], [503, "upstream call failed", null]);
      assert.equal(error, "invalid response: the status is not between 100 and 599");
    });

  test("two Content-Length fields, and a 204 with a body, are 503 or end without the body", async () => {
    for (const [status, ...lengths] of [
      ["200", "2", "2"],
      ["200", "x"],
      ["204", "5"],
    ] as const) {
      await using server = await rawServer(async (frames) => {
        const { stream } = await frames.next(HEADERS);
        const fields = [field(":status", status), ...lengths.map((length) => field("content-length", length))];
        frames.send(HEADERS, END_HEADERS, stream, Buffer.concat(fields));
        frames.send(DATA, END_STREAM, stream, Buffer.from("hello"));
        await frames.peer.closed();
      });
      await using plane = await TestPlane.start(route(server.port));
      const { response } = await ask(plane);
      assert.ok(!response.body.includes("hello"));
      assert.ok([204, 503].includes(statusOf(response)));
    }
  });

  test("a 1xx with Content-Length, which HTTP/2 forbids, is 503", async () => {
    await using server = await rawServer(async (frames) => {
      const { stream } = await frames.next(HEADERS);
      const hints = Buffer.concat([field(":status", "103"), field("link", "</a>"), field("content-length", "0")]);
      frames.send(HEADERS, END_HEADERS, stream, hints);
      await frames.peer.closed();
    });
    await using plane = await TestPlane.start(route(server.port));
    const { response } = await ask(plane);
    assert.equal(statusOf(response), 503);
  });
});
