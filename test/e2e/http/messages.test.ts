import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

/** Sends `request` and returns what the upstream got and what the client got. */
async function exchange(request: string, response: string, bodiless = false) {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(request);
  const peer = await upstream.connection();
  const received = await peer.message();
  peer.send(response);
  const answered = await client.message(bodiless);
  return { received, answered };
}

test("requests are forwarded unchanged, without hop-by-hop fields and those that Connection names", async () => {
  const { received, answered } = await exchange(
    [
      "GET /a%20b?x=1&x=2 HTTP/1.1",
      "Host: Example.com:81",
      "X-Many: 1",
      "Connection: X-Private, keep-alive",
      "x-many: 2",
      "X-Private: secret",
      "Keep-Alive: timeout=5",
      "Proxy-Connection: keep-alive",
      "Proxy-Authorization: Basic eA==",
      "Accept: a, b",
      "X-MANY: 3",
      "",
      "",
    ].join("\r\n"),
    [
      "HTTP/1.1 200 OK",
      "Set-Cookie: a=1",
      "Connection: X-Inner, keep-alive",
      "X-Inner: secret",
      "Keep-Alive: timeout=5",
      "Set-Cookie: b=2",
      "Date: Sun, 06 Nov 1994 08:49:37 GMT",
      "Content-Length: 0",
      "",
      "",
    ].join("\r\n"),
  );
  assert.equal(received.start, "GET /a%20b?x=1&x=2 HTTP/1.1");
  assert.deepEqual(received.fields, [
    "host: Example.com:81",
    "x-many: 1",
    "x-many: 2",
    "proxy-authorization: Basic eA==",
    "accept: a, b",
    "x-many: 3",
  ]);
  assert.deepEqual(answered.fields, [
    "set-cookie: a=1",
    "set-cookie: b=2",
    "date: Sun, 06 Nov 1994 08:49:37 GMT",
    "content-length: 0",
  ]);
});

test("every response has a Date, of the upstream or of the gateway", async () => {
  const dateOf = async (request: string, response: string): Promise<number> => {
    const { answered } = await exchange(request, response);
    const [date = "", ...others] = valuesOf(answered, "date");
    assert.deepEqual(others, []);
    return Date.parse(date);
  };
  const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const before = Math.floor(Date.now() / 1000) * 1000;
  for (const text of [reply(""), "HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 99 Bad\r\n\r\n"]) {
    const date = await dateOf(get, text);
    assert.ok(date >= before && date <= Date.now(), text);
  }
  assert.equal(await dateOf(get, reply("", ["Date: Sun, 06 Nov 1994 08:49:37 GMT"])), Date.UTC(1994, 10, 6, 8, 49, 37));
});

test("absolute-form targets and OPTIONS * reach the upstream in the form it expects", async () => {
  const absolute = await exchange("GET http://b.example/x?y HTTP/1.1\r\nHost: b.example\r\n\r\n", reply(""));
  assert.equal(absolute.received.start, "GET /x?y HTTP/1.1");
  assert.deepEqual(absolute.received.fields, ["host: b.example"]);
  const options = await exchange("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", reply(""));
  assert.equal(options.received.start, "OPTIONS * HTTP/1.1");
});

test("chunked bodies and trailers pass both ways", async () => {
  const { received, answered } = await exchange(
    "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n" +
      "3;x=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTrailer: X-Total\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nv\r\n1\r\nw\r\n0\r\nX-Total: 2\r\n\r\n",
  );
  assert.deepEqual(valuesOf(received, "te"), ["trailers"]);
  assert.equal(received.body, "abcde");
  assert.deepEqual(received.trailers, ["x-sum: 1"]);
  assert.equal(answered.body, "vw");
  assert.deepEqual(answered.trailers, ["x-total: 2"]);
});

test("trailers do not reach a client that did not ask for them", async () => {
  const { answered } = await exchange(
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nv\r\n0\r\nX-Total: 2\r\n\r\n",
  );
  assert.equal(answered.body, "v");
  assert.deepEqual(answered.trailers, []);
});

test("HEAD, 204 and 304 have no body, and the connection is reused", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
    await peer.message();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    await peer.message();
    peer.send("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n");
    await peer.message();
    peer.send('HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: "a"\r\n\r\n');
    await peer.message();
    peer.send(reply("end"));
  });
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  const seen: string[] = [];
  for (const method of ["HEAD", "HEAD", "GET", "GET", "GET"]) {
    client.send(`${method} / HTTP/1.1\r\nHost: a\r\n\r\n`);
    const response = await client.message(method === "HEAD");
    seen.push(`${statusOf(response)} ${valuesOf(response, "content-length")} ${response.body}`);
  }
  assert.deepEqual(seen, ["200 500 ", "200  ", "204  ", "304 9 ", "200 3 end"]);
  assert.equal(upstream.connections.length, 1);
});

test("a response that ends with the connection is delimited anew for the client", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.send("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold ");
    peer.send("times");
    peer.end();
  });
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  for (let i = 0; i < 2; i++) {
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const response = await client.message();
    assert.equal(response.start, "HTTP/1.1 200 OK");
    assert.deepEqual(valuesOf(response, "transfer-encoding"), ["chunked"]);
    assert.equal(response.body, "old times");
  }
});

test("interim responses are forwarded, but not to HTTP/1.0", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    for (;;) {
      await peer.message();
      peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n");
      peer.send(reply("done"));
    }
  });
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const hints = await client.message();
  assert.equal(statusOf(hints), 103);
  assert.deepEqual(hints.fields, ["link: </a.css>; rel=preload"]);
  assert.equal((await client.message()).body, "done");
  const old = await RawPeer.connect(plane.port);
  old.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
  assert.equal(statusOf(await old.message()), 200);
});

test("the upstream decides about Expect: 100-continue", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  const peer = await upstream.connection();
  assert.match(await peer.take("\r\n\r\n"), /expect: 100-continue/);
  peer.send("HTTP/1.1 100 Continue\r\n\r\n");
  assert.equal(statusOf(await client.message()), 100);
  client.send("body");
  await peer.take("body");
  peer.send(reply("thanks"));
  const response = await client.message();
  assert.equal(response.body, "thanks");
  assert.deepEqual(valuesOf(response, "connection"), []);
});

test("a final response before the expected body ends the connection on both sides", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  const peer = await upstream.connection();
  await peer.take("\r\n\r\n");
  peer.send(reply("no", [], "417 Expectation Failed"));
  const response = await client.message();
  assert.equal(statusOf(response), 417);
  assert.deepEqual(valuesOf(response, "connection"), ["close"]);
  assert.equal(await client.closed(), "end");
  await peer.closed();
});

test("bodies that arrive byte by byte are forwarded", async () => {
  await using upstream = await RawUpstream.answering((request) => reply(request.body));
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  const request =
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
  for (const byte of request) {
    client.send(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal((await client.message()).body, "abc0123456789abcdef");
});

test("bodies of every size arrive unchanged, both ways and in both framings", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    for (;;) {
      const { body, fields } = await peer.message();
      if (fields.includes("transfer-encoding: chunked"))
        peer.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks(body, 7001)}0\r\n\r\n`);
      else peer.send(reply(body));
    }
  });
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  for (const size of [1, 8191, 8192, 8193, 32_768, 65_535, 65_536, 65_537, 200_000, 3_000_000]) {
    const body = pattern(size);
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n${body}`);
    assert.ok((await client.message()).body === body, `${size} bytes with a length`);
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks(body, 50_001)}0\r\n\r\n`);
    assert.ok((await client.message()).body === body, `${size} bytes in chunks`);
  }
});

function pattern(size: number): string {
  let text = "";
  for (let i = 0; text.length < size; i++) text += `${i}-`;
  return text.slice(0, size);
}

function chunks(text: string, size: number): string {
  let framed = "";
  for (let at = 0; at < text.length; at += size) {
    const piece = text.slice(at, at + size);
    framed += `${piece.length.toString(16)}\r\n${piece}\r\n`;
  }
  return framed;
}

test("a trailing dot of the host changes neither the route nor what the backend gets", async () => {
  await using upstream = await RawUpstream.answering(() => reply("reached"));
  await using gateway = await TestGateway.start({
    binds: [
      {
        port: 0,
        listeners: [
          {
            hostname: "a.example",
            routes: [{ hostnames: ["a.example"], backends: [{ host: `127.0.0.1:${upstream.port}` }] }],
            policies: { authorization: { rules: [{ deny: 'request.host != "a.example"' }] } },
          },
          { hostname: "*", routes: [{ policies: { directResponse: { status: 418, body: "any" } } }] },
        ],
      },
    ],
  });
  const client = await RawPeer.connect(gateway.port());
  client.send("GET / HTTP/1.1\r\nHost: a.example.\r\n\r\n");
  assert.equal((await client.message()).body, "reached");
});
