import assert from "node:assert/strict";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { RawUpstream, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";
import { DATA, END_STREAM, HEADERS, RST_STREAM, rawServer } from "./frames.ts";
import { answer, gatewayTo, H2Server, head, send } from "./support.ts";

const [NO_ERROR, PROTOCOL_ERROR, STREAM_CLOSED, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM] = [0, 1, 5, 7, 8, 11];

test("a request that the server refused (REFUSED_STREAM) is replayed with its body, whatever its method", async () => {
  let refused = 0;
  const bodies: string[] = [];
  using server = await H2Server.start((stream) => {
    if (refused < 2) {
      refused++;
      stream.close(REFUSED_STREAM);
      return;
    }
    stream.on("data", (bytes: Buffer) => bodies.push(bytes.toString()));
    answer(stream, "at last");
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("POST / HTTP/1.1", "Content-Length: 5"));
  client.send("hello");
  assert.equal((await client.message()).body, "at last");
  assert.equal(bodies.join(""), "hello");
  assert.equal(plane.endpoints.stats()[0]?.consecutiveFailures, 0);
  const line = await plane.logged("at");
  assert.equal(line["retry.attempt"], 2);
  client.socket.destroy();
});

test("a request is not replayed if more of its body was sent than is kept", async () => {
  let asked = 0;
  using server = await H2Server.start((stream) => {
    asked++;
    let received = 0;
    stream.on("data", (bytes: Buffer) => {
      received += bytes.length;
      if (received > 70_000) stream.close(REFUSED_STREAM);
    });
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("POST / HTTP/1.1", "Content-Length: 100000"));
  client.send("x".repeat(100_000));
  assert.deepEqual([statusOf(await client.message()), asked], [503, 1]);
  client.socket.destroy();
});

test("a server that always refuses gets a request three times", async () => {
  let asked = 0;
  using server = await H2Server.start((stream) => {
    asked++;
    stream.close(REFUSED_STREAM);
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("GET / HTTP/1.1"));
  const response = await client.message();
  assert.deepEqual([statusOf(response), asked], [503, 3]);
  assert.equal(response.body, "upstream call failed");
  await plane.logged("upstream call failed: the upstream reset the stream: REFUSED_STREAM");
  client.socket.destroy();
});

test("a stream that is reset for other reasons is 503, and a failure of the endpoint", async () => {
  let asked = 0;
  using server = await H2Server.start((stream) => {
    asked++;
    stream.close(PROTOCOL_ERROR);
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("GET / HTTP/1.1"));
  const response = await client.message();
  assert.deepEqual([statusOf(response), asked], [503, 1]);
  assert.equal(response.body, "upstream call failed");
  await plane.logged("upstream call failed: the upstream reset the stream: PROTOCOL_ERROR");
  assert.equal(plane.endpoints.stats()[0]?.consecutiveFailures, 1);
  assert.equal(server.open, 1);
  client.socket.destroy();
});

test("GOAWAY: streams up to its last one continue, later ones are replayed on another connection", async () => {
  await using server = await rawServer(async (frames, connection) => {
    const first = await frames.next(HEADERS);
    if (connection === 0) {
      const second = await frames.next(HEADERS);
      frames.goaway(first.stream, NO_ERROR);
      frames.respond(first.stream);
      frames.send(DATA, END_STREAM, first.stream, Buffer.from("old"));
      assert.ok(second.stream > first.stream);
    } else {
      frames.respond(first.stream);
      frames.send(DATA, END_STREAM, first.stream, Buffer.from("new"));
    }
    await frames.peer.closed();
  });
  await using plane = await gatewayTo(server.port);
  const one = await send(plane, head("GET /one HTTP/1.1"));
  await until(() => server.connections.length === 1, "the first connection");
  const two = await send(plane, head("POST /two HTTP/1.1", "Content-Length: 0"));
  assert.deepEqual([(await one.message()).body, (await two.message()).body], ["old", "new"]);
  assert.equal(server.connections.length, 2);
  for (const peer of [one, two]) peer.socket.destroy();
});

test("GOAWAY with an error ends the connection: unprocessed requests are replayed, the rest fails", async () => {
  await using server = await rawServer(async (frames, connection) => {
    const first = await frames.next(HEADERS);
    if (connection === 0) {
      await frames.next(HEADERS);
      frames.goaway(first.stream, ENHANCE_YOUR_CALM);
    } else {
      frames.respond(first.stream);
      frames.send(DATA, END_STREAM, first.stream, Buffer.from("calm"));
    }
    await frames.peer.closed();
  });
  await using plane = await gatewayTo(server.port);
  const one = await send(plane, head("POST /one HTTP/1.1", "Content-Length: 0"));
  await until(() => server.connections.length === 1, "the first connection");
  const two = await send(plane, head("POST /two HTTP/1.1", "Content-Length: 0"));
  const [failed, repeated] = [await one.message(), await two.message()];
  assert.deepEqual([statusOf(failed), repeated.body], [503, "calm"]);
  assert.equal(failed.body, "upstream call failed");
  await plane.logged("upstream call failed: the upstream ended the connection: ENHANCE_YOUR_CALM");
  for (const peer of [one, two]) peer.socket.destroy();
});

test("a connection that is killed while idle is detected, or the request is replayed", async () => {
  using server = await H2Server.start((stream) => answer(stream, "ok"));
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("GET / HTTP/1.1"));
  assert.equal((await client.message()).body, "ok");
  server.sessions[0]?.socket.destroy();
  client.send(head("GET / HTTP/1.1"));
  assert.equal((await client.message()).body, "ok");
  assert.equal(server.sessions.length, 2);
  client.socket.destroy();
});

test("a request that was not sent before its connection ended is replayed, whatever its method", async () => {
  let asked = 0;
  using server = await H2Server.start((stream) => {
    asked++;
    answer(stream, "ok");
  });
  const sockets: Socket[] = [];
  server.server.on("connection", (socket: Socket) => sockets.push(socket));
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("POST / HTTP/1.1", "Content-Length: 0"));
  assert.equal((await client.message()).body, "ok");
  // Both arrive in one turn of the event loop, in this order; frames leave at its end.
  client.send(head("POST / HTTP/1.1", "Content-Length: 0"));
  sockets[0]?.destroy();
  assert.equal((await client.message()).body, "ok");
  assert.deepEqual([asked, sockets.length, plane.endpoints.stats()[0]?.consecutiveFailures], [2, 2, 0]);
  client.socket.destroy();
});

test("a server that is killed during a body: the client sees an incomplete response", async () => {
  for (const length of [undefined, "1000"]) {
    using server = await H2Server.start((stream) => {
      stream.respond({ ":status": 200, ...(length !== undefined && { "content-length": length }) });
      stream.write("begin");
      setImmediate(() => setImmediate(() => stream.session?.socket.destroy()));
    });
    await using plane = await gatewayTo(server.port);
    const client = await send(plane, head("GET / HTTP/1.1"));
    await client.closed();
    assert.match(client.received, /^HTTP\/1\.1 200/);
    assert.doesNotMatch(client.received, /\r\n0\r\n/);
    const line = await plane.logged("upstream call failed");
    assert.equal(line.error, "upstream call failed: the upstream closed the connection");
    client.socket.destroy();
  }
});

test("a body that is cut off by RST_STREAM is incomplete too, even with NO_ERROR", async () => {
  for (const code of [NO_ERROR, CANCEL, PROTOCOL_ERROR]) {
    await using server = await rawServer(async (frames) => {
      const { stream } = await frames.next(HEADERS);
      frames.respond(stream);
      frames.send(DATA, 0, stream, Buffer.from("begin"));
      frames.reset(stream, code);
      await frames.peer.closed();
    });
    await using plane = await gatewayTo(server.port);
    const client = await send(plane, head("GET / HTTP/1.1"));
    await client.closed();
    assert.doesNotMatch(client.received, /\r\n0\r\n/, `code ${code}`);
    await plane.logged("the upstream reset the stream");
    client.socket.destroy();
  }
});

test("a complete response is delivered, however the server ends the stream or the connection after it", async () => {
  await using server = await rawServer(async (frames) => {
    const { stream } = await frames.next(HEADERS);
    frames.respond(stream);
    for (let i = 0; i < 4; i++) frames.send(DATA, i === 3 ? END_STREAM : 0, stream, Buffer.alloc(16_000, "x"));
    frames.reset(stream, NO_ERROR);
    frames.peer.end();
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("POST / HTTP/1.1", "Content-Length: 9"));
  // A client that is slow to take it, with the connection gone meanwhile.
  client.socket.pause();
  await until(() => server.connections[0]?.ended !== undefined, "the end of the connection");
  client.socket.resume();
  assert.equal((await client.message()).body.length, 64_000);
  client.socket.destroy();
});

test("a body with all of its Content-Length is complete, even if NO_ERROR comes in place of END_STREAM", async () => {
  await using server = await rawServer(async (frames) => {
    const { stream } = await frames.next(HEADERS);
    frames.respond(stream, { "content-length": "5" });
    frames.send(DATA, 0, stream, Buffer.from("whole"));
    frames.reset(stream, NO_ERROR);
    await frames.peer.closed();
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("GET / HTTP/1.1"));
  assert.equal((await client.message()).body, "whole");
  assert.equal(plane.endpoints.stats()[0]?.consecutiveFailures, 0);
  client.socket.destroy();
});

test("a server that responds before the end of the request gets a CANCEL in place of the rest", async () => {
  await using server = await rawServer(async (frames) => {
    const { stream } = await frames.next(HEADERS);
    frames.respond(stream, {}, END_STREAM);
    const reset = await frames.next(RST_STREAM);
    assert.deepEqual([reset.stream, reset.payload.readUInt32BE()], [stream, CANCEL]);
    const next = await frames.next(HEADERS);
    frames.respond(next.stream, {}, END_STREAM);
    await frames.peer.closed();
  });
  await using plane = await gatewayTo(server.port);
  for (const request of [head("POST / HTTP/1.1", "Content-Length: 9"), head("GET / HTTP/1.1")]) {
    const client = await send(plane, request);
    assert.equal(statusOf(await client.message()), 200);
    client.socket.destroy();
  }
});

test("a body that does not match content-length aborts the response", async () => {
  await using server = await rawServer(async (frames) => {
    const { stream } = await frames.next(HEADERS);
    frames.respond(stream, { "content-length": "9" });
    frames.send(DATA, END_STREAM, stream, Buffer.from("short"));
    await frames.peer.closed();
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("GET / HTTP/1.1"));
  await client.closed();
  const line = await plane.logged("upstream call failed");
  assert.equal(line.error, "upstream call failed: invalid response: the body is shorter than its Content-Length");
  client.socket.destroy();
});

test("a response with fields that HTTP/2 forbids is rejected", async () => {
  await using server = await rawServer(async (frames) => {
    const { stream } = await frames.next(HEADERS);
    frames.respond(stream, { connection: "close" }, END_STREAM);
    await frames.peer.closed();
  });
  await using plane = await gatewayTo(server.port);
  const client = await send(plane, head("GET / HTTP/1.1"));
  assert.equal(statusOf(await client.message()), 503);
  client.socket.destroy();
});

test("the server sees CANCEL when the client disconnects; a connection that is still active serves others", async () => {
  await using server = await rawServer(async (frames) => {
    const kept = await frames.next(HEADERS);
    frames.respond(kept.stream);
    const first = await frames.next(HEADERS);
    frames.send(DATA, 0, kept.stream, Buffer.from("alive"));
    const reset = await frames.next(RST_STREAM);
    assert.deepEqual([reset.stream, reset.payload.readUInt32BE()], [first.stream, CANCEL]);
    const second = await frames.next(HEADERS);
    frames.respond(second.stream, {}, END_STREAM);
    await frames.peer.closed();
  });
  await using plane = await gatewayTo(server.port);
  const kept = await send(plane, head("GET /kept HTTP/1.1"));
  await kept.take("\r\n\r\n");
  const gone = await send(plane, head("GET / HTTP/1.1"));
  await kept.take("alive");
  gone.reset();
  await until(() => plane.endpoints.stats()[0]?.pending === 1, "the end of the call");
  const client = await send(plane, head("GET / HTTP/1.1"));
  assert.equal(statusOf(await client.message()), 200);
  assert.equal(server.connections.length, 1);
  for (const { socket } of [kept, client]) socket.destroy();
});

test("an incomplete request body never ends with END_STREAM", async () => {
  /** Sends a part of a body and runs `giveUp`; returns the frames after that. */
  const framesAfter = async (framing: string, retry: boolean): Promise<string[]> => {
    const begun = Promise.withResolvers<void>();
    const seen: string[] = [];
    await using server = await rawServer(async (frames, connection) => {
      const { stream } = await frames.next(HEADERS);
      await frames.next(DATA);
      if (connection === 0 && retry) frames.respond(stream, { "x-again": "1" });
      begun.resolve();
      for (;;) {
        const { type, flags, stream: on } = await frames.next(DATA, RST_STREAM);
        if (on === stream) seen.push(type === DATA ? `DATA ${flags & END_STREAM}` : "RST_STREAM");
        if (type === RST_STREAM) break;
      }
      frames.peer.end();
    });
    const policies = retry ? { retry: { attempts: 1, codes: [200], backoff: ms(1) } } : {};
    await using plane = await gatewayTo(server.port, { policies });
    const client = await send(plane, head("POST / HTTP/1.1", framing));
    client.send(framing.startsWith("C") ? "abc" : "3\r\nabc\r\n");
    await begun.promise;
    if (!retry) client.reset();
    await (await server.connection()).closed();
    client.socket.destroy();
    return seen;
  };
  for (const framing of ["Content-Length: 9", "Transfer-Encoding: chunked"])
    for (const retry of [false, true])
      assert.deepEqual(await framesAfter(framing, retry), ["RST_STREAM"], `${framing}, retry: ${retry}`);
});

test("a connection that was silent during a cancelled call is not reused", async () => {
  await using server = await rawServer(async (frames, connection) => {
    const { stream } = await frames.next(HEADERS);
    if (connection > 0) frames.respond(stream, {}, END_STREAM);
    await frames.peer.closed();
  });
  const backendPolicies = { http: { version: "HTTP/2.0", requestTimeout: ms(50) } } as const;
  await using plane = await gatewayTo(server.port, { backendPolicies });
  const client = await send(plane, head("GET / HTTP/1.1"));
  assert.equal(statusOf(await client.message()), 504);
  client.send(head("GET / HTTP/1.1"));
  assert.equal(statusOf(await client.message()), 200);
  await until(() => server.connections[0]?.ended !== undefined, "the end of the first connection");
  client.socket.destroy();
});

test("heads of responses have the same limits as in HTTP/1.1", async () => {
  using server = await H2Server.start((stream, { ":path": path }) => {
    const fields = path === "/many" ? Array.from({ length: 250 }, (_, i) => [`x-${i}`, "1"]) : [];
    if (path === "/large") fields.push(["x", "y".repeat(70_000)]);
    stream.respond({ ":status": 200, ...Object.fromEntries(fields) }, { endStream: true });
  });
  await using plane = await gatewayTo(server.port);
  for (const [path, status] of [
    ["/many", 503],
    ["/large", 503],
    ["/", 200],
  ] as const) {
    const client = await send(plane, head(`GET ${path} HTTP/1.1`));
    assert.equal(statusOf(await client.message()), status);
    client.socket.destroy();
  }
});

test("a timeout of the attempt cancels the stream", async () => {
  let cancelled = false;
  using server = await H2Server.start((stream) => {
    stream.on("aborted", () => {
      cancelled = true;
    });
  });
  const backendPolicies = { http: { version: "HTTP/2.0", requestTimeout: ms(50) } } as const;
  await using plane = await gatewayTo(server.port, { backendPolicies });
  const client = await send(plane, head("GET / HTTP/1.1"));
  assert.equal(statusOf(await client.message()), 504);
  await until(() => cancelled, "the reset");
  client.socket.destroy();
});

test("a server that speaks only HTTP/1.1 is 503 for all waiting requests, after one connection", async () => {
  await using server = await RawUpstream.answering(() => "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
  await using plane = await gatewayTo(server.port);
  const clients = await Promise.all(Array.from({ length: 4 }, () => send(plane, head("GET / HTTP/1.1"))));
  for (const client of clients) {
    const response = await client.message();
    assert.equal(statusOf(response), 503);
    assert.deepEqual(valuesOf(response, "content-type"), ["text/plain"]);
    client.socket.destroy();
  }
  assert.match(String((await plane.logged("HTTP_1_1_REQUIRED")).error), /the peer speaks HTTP\/1\.1/);
  assert.ok(plane.lines.every((line) => !line.includes("retry.attempt")));
});

test("no connection: every request that waits for it gets 503", async () => {
  const closed = await H2Server.start(() => {});
  const { port } = closed;
  closed[Symbol.dispose]();
  await using plane = await gatewayTo(port);
  const clients = await Promise.all(Array.from({ length: 5 }, () => send(plane, head("GET / HTTP/1.1"))));
  for (const client of clients) {
    const response = await client.message();
    assert.equal(statusOf(response), 503);
    assert.equal(response.body, "upstream call failed");
    client.socket.destroy();
  }
});

test("a head that is larger than the server accepts is 431 without a retry, and disturbs no other request", async () => {
  const held: ServerHttp2Stream[] = [];
  const trailers: unknown[] = [];
  using server = await H2Server.start(
    (stream, { ":path": path }) => {
      stream.on("trailers", (fields) => trailers.push(fields));
      if (path === "/held") held.push(stream);
      else answer(stream, "hello");
    },
    { settings: { maxHeaderListSize: 1000 } },
  );
  // A retry would keep the client waiting for longer than the test does.
  const retry = { attempts: 1, backoff: ms(600_000), codes: [503] };
  await using plane = await gatewayTo(server.port, { policies: { retry } });
  const neighbour = await send(plane, head("GET /held HTTP/1.1"));
  await until(() => held.length === 1, "the other request");
  const fields = (bytes: number): string => `X-Large: ${"x".repeat(bytes)}`;
  const client = await send(plane, head("GET / HTTP/1.1", fields(2000)));
  const refused = await client.message();
  assert.equal(statusOf(refused), 431);
  client.send(head("GET / HTTP/1.1", fields(300)));
  assert.equal((await client.message()).body, "hello");
  client.send(`${head("POST / HTTP/1.1", "Transfer-Encoding: chunked")}2\r\nhi\r\n0\r\n${fields(2000)}\r\n\r\n`);
  assert.equal((await client.message()).body, "hello");
  assert.deepEqual(trailers, [], "trailers that are too large are left out");
  assert.equal(server.sessions.length, 1);
  assert.match(String((await plane.logged('"http.status":431')).error), /accepts at most 1000 bytes of header fields/);
  for (const stream of held) answer(stream, "held");
  assert.equal((await neighbour.message()).body, "held");
  assert.equal(plane.endpoints.stats()[0]?.consecutiveFailures, 0);
  for (const { socket } of [client, neighbour]) socket.destroy();
});

test("a server that responds early and resets each stream without an error keeps its connection", async () => {
  const count = 1500;
  let connections = 0;
  await using server = await rawServer(async (frames) => {
    connections++;
    for (;;) {
      const { type, stream } = await frames.next(HEADERS, DATA);
      if (type === HEADERS) frames.respond(stream, {}, END_STREAM);
      // Like servers in Go: once without an error, and again for each frame in flight.
      frames.reset(stream, type === HEADERS ? NO_ERROR : STREAM_CLOSED);
    }
  });
  await using plane = await gatewayTo(server.port);
  const client = await H2Client.connect(plane.port);
  for (let first = 1; first < 2 * count; first += 100) {
    const ids = Array.from({ length: 50 }, (_, i) => first + 2 * i);
    for (const id of ids) {
      client.request(id, "POST");
      client.data(id, "x", false);
    }
    for (const id of ids) assert.equal(H2Client.status(await client.response(id)), 200);
  }
  assert.equal(connections, 1);
  client.peer.socket.destroy();
});
