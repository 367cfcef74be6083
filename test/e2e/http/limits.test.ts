import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, settled, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OWN = [
  { target: { type: "invalid", reference: "" }, policies: { directResponse: { status: 200, body: "ok" } } },
] as const;

const BODIES: Readonly<Record<number, string>> = {
  400: "invalid request",
  414: "URI too long",
  417: "expectation failed",
  431: "request header fields too large",
  501: "unknown transfer coding",
  505: "HTTP version not supported",
};

for (const [what, request, status, reason] of [
  ["no request at all", "\x16\x03\x01\x02\x00\x01\x00\x01", 400, /does not begin with a method/],
  ["a bare LF", "GET / HTTP/1.1\nHost: a\n\n", 400, /LF without CR/],
  ["no Host", "GET / HTTP/1.1\r\n\r\n", 400, /Host/],
  ["two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, /more than one Host/],
  [
    "both lengths",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    400,
    /together/,
  ],
  ["an unknown coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, /chunked/],
  ["HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, /HTTP\/1.1/],
  ["an unknown expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417, /100-continue/],
  ["101 fields", `GET / HTTP/1.1\r\nHost: a\r\n${"X: y\r\n".repeat(100)}\r\n`, 431, /too many/],
  ["a long target", `GET /${"x".repeat(9000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 414, /target is too long/],
  ["a request line without end", `GET /${"x".repeat(70_000)}`, 414, /longer than 61440/],
  ["a head without end", `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(70_000)}`, 431, /more than 61440/],
  ["a bad chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, /chunk/],
] as const)
  test(`${what}: ${status}, the reason in the log, and the connection closed`, async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(request);
    const response = await client.message();
    assert.equal(statusOf(response), status);
    assert.equal(response.body, BODIES[status]);
    assert.deepEqual(valuesOf(response, "content-type"), ["text/plain"]);
    assert.deepEqual(valuesOf(response, "connection"), ["close"]);
    assert.match(valuesOf(response, "date").join(), / GMT$/);
    assert.equal(await client.closed(), "end");
    assert.match(String((await plane.logged(`"http.status":${status}`)).error), reason);
    assert.equal(upstream.connections.map(({ received }) => received).join(), "", "what the upstream has seen of it");
  });

test("a rejected client that is still sending receives the response", async () => {
  await using plane = await TestPlane.start(OWN);
  const client = await RawPeer.connect(plane.port);
  client.send(`GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n${"x".repeat(900_000)}`);
  assert.equal(statusOf(await client.message()), 400);
  assert.equal(await client.closed(), "end");
});

test("a large head that arrives byte by byte is read", async () => {
  await using plane = await TestPlane.start(OWN);
  const client = await RawPeer.connect(plane.port);
  const head = `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(3000)}\r\n\r\n`;
  for (const byte of head) {
    client.send(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal((await client.message()).body, "ok");
});

test("a body longer than maxRequestBodySize is 413, with and without Content-Length", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port, { frontend: { maxRequestBodySize: 10 } });
  const announced = await RawPeer.connect(plane.port);
  announced.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n01234567890");
  assert.equal(statusOf(await announced.message()), 413);
  const chunked = await RawPeer.connect(plane.port);
  chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n");
  const peer = await upstream.connection();
  await peer.take("0123456789");
  chunked.send("1\r\nx\r\n0\r\n\r\n");
  assert.equal(statusOf(await chunked.message()), 413);
  await peer.closed();
});

test("a body of exactly maxRequestBodySize passes, with and without Content-Length", async () => {
  await using upstream = await RawUpstream.answering(({ body }) => reply(body));
  await using plane = await TestPlane.start(upstream.port, { frontend: { maxRequestBodySize: 10 } });
  for (const framed of [
    "Content-Length: 10\r\n\r\n0123456789",
    "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n",
  ]) {
    const client = await RawPeer.connect(plane.port);
    client.send(`POST / HTTP/1.1\r\nHost: a\r\n${framed}`);
    const answer = await client.message();
    assert.deepEqual([statusOf(answer), answer.body], [200, "0123456789"]);
  }
});

test("a head that does not arrive in time is 408; an idle connection closes without a response", async () => {
  await using impatient = await TestPlane.start(OWN, { frontend: { headerReadTimeout: 50 } });
  const slow = await RawPeer.connect(impatient.port);
  slow.send("GET / HTT");
  assert.equal(statusOf(await slow.message()), 408);
  assert.equal(await slow.closed(), "end");
  // Long enough for a request to arrive on a slow machine.
  await using plane = await TestPlane.start(OWN, { frontend: { idleTimeout: 500 } });
  const idle = await RawPeer.connect(plane.port);
  assert.equal(await idle.closed(), "end");
  assert.equal(idle.received, "");
  const used = await RawPeer.connect(plane.port);
  used.send(GET);
  await used.message();
  assert.equal(await used.closed(), "end");
});

test("a body that stops arriving is 408, and the upstream sees the end of the connection", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port, { frontend: { streamIdleTimeout: 50 } });
  const client = await RawPeer.connect(plane.port);
  client.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\npart");
  const response = await client.message();
  assert.equal(statusOf(response), 408);
  assert.equal(response.body, "request timeout");
  await (await upstream.connection()).closed();
  const line = await plane.logged("/slow");
  assert.deepEqual([line["http.status"], line.error], [408, "request timeout: the request body stopped arriving"]);
});

test("a response without progress is aborted", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
  });
  await using plane = await TestPlane.start(upstream.port, { frontend: { streamIdleTimeout: 50 } });
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  await client.take("part");
  await client.closed();
  await upstream.connections[0]?.closed();
});

for (const complete of [true, false])
  test(`a response that a policy buffers and that stops arriving is 504: request ${complete ? "complete" : "incomplete at first"}`, async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.take("\r\n\r\n");
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
    });
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const policies = { buffer: { response: { maxBytes: 1000, failureMode: "failClosed" } } } as const;
    await using plane = await TestPlane.start([{ target, policies }], { frontend: { streamIdleTimeout: 500 } });
    const client = await RawPeer.connect(plane.port);
    client.send(complete ? GET : "POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
    await until(() => JSON.stringify(plane.plane.tasks()).includes('"response-policies"'), "the response");
    if (!complete) client.send("body");
    assert.equal(statusOf(await client.message()), 504);
    await upstream.connections[0]?.closed();
    const [line] = plane.lines.map((each) => JSON.parse(each) as Record<string, unknown>);
    assert.match(String(line?.error), /^upstream call timeout: the response body stopped arriving$/);
  });

test("streamIdleTimeout does not limit how long an upstream takes to respond", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    peer.send(reply("late"));
  });
  await using plane = await TestPlane.start(upstream.port, { frontend: { streamIdleTimeout: 50, idleTimeout: 500 } });
  const client = await RawPeer.connect(plane.port);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
  assert.equal((await client.message()).body, "late");
});

test("connections beyond maxConnections are closed at once", async () => {
  await using plane = await TestPlane.start(OWN, { frontend: { maxConnections: 1 } });
  const first = await RawPeer.connect(plane.port);
  first.send(GET);
  await first.message();
  const second = await RawPeer.connect(plane.port);
  await second.closed();
  first.send(GET);
  assert.equal((await first.message()).body, "ok");
});

test("a client that pipelines requests without reading responses is not read", async () => {
  const body = "x".repeat(10_000);
  await using plane = await TestPlane.start([
    { target: { type: "invalid", reference: "" }, policies: { directResponse: { status: 200, body } } },
  ]);
  const client = await RawPeer.connect(plane.port);
  client.socket.pause();
  const count = 20_000;
  client.send(GET.repeat(count));
  await plane.logged('"http.status":200');
  await settled(() => plane.lines.length);
  // What the sockets of both sides buffer, and little more: 20,000 responses are 200 MB.
  assert.ok(plane.lines.length < count / 4, `${plane.lines.length} answers were made`);
  client.socket.removeAllListeners("data");
  client.socket.resume();
  const deadline = Date.now() + 60_000;
  while (plane.lines.length < count && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(plane.lines.length, count);
});

test("a client that pipelines thousands of requests does not delay other clients", async () => {
  await using plane = await TestPlane.start(OWN);
  const pipelining = await RawPeer.connect(plane.port);
  const neighbour = await RawPeer.connect(plane.port);
  for (const client of [pipelining, neighbour]) {
    client.send(GET);
    await client.message();
  }
  const before = plane.lines.length;
  const count = 4000;
  // Both are in the gateway's sockets before it reads either.
  pipelining.send(GET.repeat(count));
  neighbour.send("GET /neighbour HTTP/1.1\r\nHost: a\r\n\r\n");
  await plane.logged("/neighbour");
  const place = plane.lines.findIndex((line) => line.includes("/neighbour")) - before;
  assert.ok(place < 200, `${place} requests were answered first`);
  for (let i = 0; i < count; i++) await pipelining.message();
});

test("all pipelined requests get responses, even if the client closes its sending side at once", async () => {
  await using plane = await TestPlane.start(OWN);
  const client = await RawPeer.connect(plane.port);
  const count = 300;
  client.send(GET.repeat(count));
  client.end();
  for (let i = 0; i < count; i++) assert.equal((await client.message()).body, "ok");
  assert.equal(await client.closed(), "end");
  assert.equal(client.received, "");
});
