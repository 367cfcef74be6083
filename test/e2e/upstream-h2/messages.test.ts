import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http2";
import { test } from "node:test";
import { RawPeer, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { answer, gatewayTo, H2Server, head, send } from "./support.ts";

test("an HTTP/1.1 request arrives as HTTP/2: with pseudo-fields, without fields of the connection", async () => {
  let seen: IncomingHttpHeaders = {};
  using server = await H2Server.start((stream, headers) => {
    seen = headers;
    answer(stream, "body");
  });
  await using plane = await gatewayTo(server.port);
  const fields = ["X-Name: v", "X-Name: w", "Cookie: a=1; b=2", "Connection: x-gone", "X-Gone: 1", "Keep-Alive: 5"];
  const client = await send(
    plane,
    head("PUT /path?q=1 HTTP/1.1", ...fields, "TE: trailers, gzip", "Content-Length: 2"),
  );
  client.send("hi");
  const response = await client.message();
  assert.deepEqual([statusOf(response), response.body], [200, "body"]);
  const {
    ":method": method,
    ":scheme": scheme,
    ":path": path,
    ":authority": authority,
    "cdn-loop": _,
    ...others
  } = seen;
  assert.deepEqual([method, scheme, path, authority], ["PUT", "http", "/path?q=1", "shop.example"]);
  assert.deepEqual(Object.fromEntries(Object.entries(others)), {
    "x-name": "v, w",
    cookie: "a=1; b=2",
    te: "trailers",
    "content-length": "2",
  });
  client.socket.destroy();
});

test("repeated fields that HTTP/1.1 allows pass unchanged", async () => {
  let seen: readonly string[] = [];
  using server = await H2Server.start((stream, _headers, raw) => {
    seen = raw;
    answer(stream, "");
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("GET / HTTP/1.1", "Content-Type: a", "Content-Type: b"));
  assert.equal(statusOf(await client.message()), 200);
  assert.deepEqual(
    seen.filter((_value, i) => seen[i - 1] === "content-type"),
    ["a", "b"],
  );
  client.socket.destroy();
});

test("fields of a response keep their order and number; it is chunked unless it has a Content-Length", async () => {
  using server = await H2Server.start((stream, { ":path": path }) => {
    const length = path === "/length" ? { "content-length": "4" } : {};
    stream.respond({ ":status": 203, "set-cookie": ["a=1", "b=2"], "x-b": "2", ...length });
    stream.end("text");
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("GET / HTTP/1.1") + head("GET /length HTTP/1.1"));
  const [chunked, counted] = [await client.message(), await client.message()];
  assert.equal(statusOf(chunked), 203);
  assert.deepEqual(valuesOf(chunked, "set-cookie"), ["a=1", "b=2"]);
  assert.deepEqual(valuesOf(chunked, "transfer-encoding"), ["chunked"]);
  assert.deepEqual([chunked.body, counted.body], ["text", "text"]);
  assert.deepEqual(valuesOf(counted, "content-length"), ["4"]);
  assert.deepEqual(valuesOf(counted, "transfer-encoding"), []);
  client.socket.destroy();
});

test("responses without a body: HEAD, 204, 304, and one that ends with its head", async () => {
  using server = await H2Server.start((stream, { ":path": path, ":method": method }) => {
    const status = Number(path?.slice(1));
    stream.respond(
      { ":status": status, ...(method === "HEAD" && { "content-length": "7" }) },
      { endStream: method !== "HEAD" },
    );
    if (method === "HEAD") stream.end();
  });
  await using plane = await gatewayTo(server.port);
  const client = await RawPeer.connect(plane.port);
  client.send(head("HEAD /200 HTTP/1.1"));
  const toHead = await client.message(true);
  assert.deepEqual([statusOf(toHead), valuesOf(toHead, "content-length")], [200, ["7"]]);
  for (const status of [204, 304, 200]) {
    client.send(head(`GET /${status} HTTP/1.1`));
    const response = await client.message();
    assert.deepEqual([statusOf(response), response.body], [status, ""]);
    assert.deepEqual(valuesOf(response, "content-length"), status === 200 ? ["0"] : []);
  }
  assert.equal(client.received, "");
  assert.equal(server.sessions.length, 1);
  client.socket.destroy();
});

test("trailers go both ways, except those that trailers must not hold", async () => {
  let trailers: IncomingHttpHeaders = {};
  using server = await H2Server.start((stream) => {
    stream.on("trailers", (fields) => {
      trailers = fields;
    });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": ["1", "2"], "set-cookie": "no=1" }));
    stream.resume();
    stream.on("end", () => {
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.end("abc");
    });
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(
    plane,
    head("POST / HTTP/1.1", "TE: trailers", "Connection: te", "Transfer-Encoding: chunked"),
  );
  client.send("3\r\nabc\r\n0\r\nX-Up: 1\r\nAuthorization: no\r\nX-Up: 2\r\n\r\n");
  const response = await client.message();
  assert.deepEqual([response.body, response.trailers], ["abc", ["x-sum: 1", "x-sum: 2"]]);
  assert.deepEqual(Object.entries(trailers), [["x-up", "1, 2"]]);
  client.send(head("POST / HTTP/1.1", "Transfer-Encoding: chunked"));
  client.send("0\r\n__proto__: 1\r\n\r\n");
  assert.deepEqual((await client.message()).trailers, []);
  assert.deepEqual(Object.keys(trailers), ["__proto__"]);
  client.socket.destroy();
});

test("1xx responses and Expect: 100-continue pass through", async () => {
  using server = await H2Server.start((stream, { expect }) => {
    stream.additionalHeaders({ ":status": 103, link: "</a>" });
    if (expect === "100-continue") stream.additionalHeaders({ ":status": 100 });
    stream.resume();
    stream.on("end", () => {
      stream.respond({ ":status": 200 });
      stream.end("done");
    });
  });
  // Node's server responds to expectations itself unless there is a listener.
  server.server.on("checkContinue", () => {});
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("POST / HTTP/1.1", "Expect: 100-continue", "Content-Length: 2"));
  const hints = await client.message();
  assert.deepEqual([statusOf(hints), valuesOf(hints, "link")], [103, ["</a>"]]);
  assert.equal(statusOf(await client.message()), 100);
  client.send("ok");
  assert.equal((await client.message()).body, "done");
  client.socket.destroy();
});

test("a response before the end of the request is forwarded; the rest of the request is not sent", async () => {
  let received = 0;
  using server = await H2Server.start((stream) => {
    stream.on("data", (bytes: Buffer) => {
      received += bytes.length;
    });
    stream.respond({ ":status": 413 });
    stream.end("too much");
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("POST / HTTP/1.1", "Content-Length: 1000000"));
  const response = await client.message();
  assert.deepEqual([statusOf(response), response.body], [413, "too much"]);
  client.send("x".repeat(1_000_000));
  const next = await send(plane, head("GET / HTTP/1.1"));
  assert.equal(statusOf(await next.message()), 413);
  assert.equal(received, 0);
  assert.equal(server.sessions.length, 1);
  for (const peer of [client, next]) peer.socket.destroy();
});

test("clients that offer h2c in HTTP/1.1 get a normal response; other upgrades are rejected", async () => {
  using server = await H2Server.start((stream) => answer(stream, "served"));
  await using plane = await gatewayTo(server.port);
  const client = await send(
    plane,
    head("GET / HTTP/1.1", "Connection: upgrade, http2-settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"),
  );
  assert.equal((await client.message()).body, "served");
  client.socket.destroy();
  const socket = await send(plane, head("GET / HTTP/1.1", "Connection: upgrade", "Upgrade: websocket"));
  const refusal = await socket.message();
  assert.equal(statusOf(refusal), 502);
  assert.equal(refusal.body, "request upgrade failed");
  await plane.logged("request upgrade failed: websocket was requested of a backend that speaks HTTP/2");
  socket.socket.destroy();
});
