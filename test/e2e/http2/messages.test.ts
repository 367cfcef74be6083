import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { test } from "node:test";
import type { TraceMessage } from "../../../src/trace/events.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { RawPeer, RawUpstream, reply, settled } from "../../helpers/raw-peer.ts";
import { gatewayTo, H2Server } from "../upstream-h2/support.ts";
import { answerOf, NodeClient } from "./support.ts";

/** A route to a server of HTTP/1.1. */
function planeTo(port: number, frontend = {}): Promise<TestPlane> {
  const target = { type: "static", host: "127.0.0.1", port } as const;
  return TestPlane.start([{ target, backendPolicies: { http: { version: "HTTP/1.1" } } }], { frontend });
}

test("a gRPC call streams both ways, HTTP/2 on both sides, and ends with its trailers", async () => {
  using server = await H2Server.start((stream: ServerHttp2Stream, headers) => {
    assert.equal(headers.te, "trailers");
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("data", (bytes: Buffer) => stream.write(`echo ${bytes}`));
    stream.on("end", () => stream.end());
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": "fine" }));
  });
  await using plane = await gatewayTo(server.port);
  await using client = await NodeClient.connect(plane.port);
  const call = client.open({ ":method": "POST", ":path": "/s/m", te: "trailers", "content-type": "application/grpc" });
  call.setEncoding("latin1");
  for (const message of ["one", "two"]) {
    call.write(message);
    assert.equal((await once(call, "data"))[0], `echo ${message}`);
  }
  const answer = answerOf(call);
  call.end();
  const { trailers } = await answer;
  assert.deepEqual([trailers["grpc-status"], trailers["grpc-message"]], ["0", "fine"]);
  assert.equal((await plane.logged("/s/m"))["grpc.status"], 0);
});

test("trailers of a request reach a server of HTTP/1.1, and its trailers the client", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    const { trailers } = await peer.message();
    peer.send(
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-echo: ${trailers.join()}\r\n\r\n`,
    );
  });
  await using plane = await planeTo(upstream.port);
  const client = await H2Client.connect(plane.port);
  client.request(1, "POST", ["te", "trailers"]);
  client.data(1, "body", false);
  client.headers(1, ["x-sum", "4"]);
  const { sections, body } = await client.response(1);
  assert.equal(body, "ok");
  assert.deepEqual(sections.at(-1), ["x-echo", "x-sum: 4"]);
  client.peer.socket.destroy();
});

test("a client may wait for 100 before its body, and gets early hints", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.take("\r\n\r\n");
    peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
    await peer.take("body");
    peer.send(reply("thanks"));
  });
  await using plane = await planeTo(upstream.port);
  await using client = await NodeClient.connect(plane.port);
  const stream = client.open({ ":method": "POST", ":path": "/", expect: "100-continue", "content-length": 4 });
  const hints = once(stream, "headers");
  const answer = answerOf(stream);
  await once(stream, "continue");
  const [early] = await hints;
  assert.deepEqual([early[":status"], early.link], [103, "</a.css>"]);
  stream.end("body");
  assert.equal((await answer).body, "thanks");
});

test("a client that reads slowly slows down its backend, but no other request of its connection", async () => {
  let sent = 0;
  await using upstream = await RawUpstream.listen(async (peer) => {
    for (;;) {
      const { start } = await peer.message();
      if (start.includes("/small")) {
        peer.send(reply("small"));
        continue;
      }
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
      const piece = Buffer.alloc(100_000, "x");
      for (let i = 0; i < 1000; i++) {
        sent += piece.length;
        if (!peer.socket.write(piece)) await once(peer.socket, "drain");
      }
    }
  });
  await using plane = await planeTo(upstream.port);
  // The window of 65,535 bytes is all that it gives.
  const client = await H2Client.connect(plane.port);
  client.request(1, "GET", [], "/large");
  await client.until(() => client.stream(1).body.length === 65_535, "the window");
  await settled(() => sent);
  assert.ok(sent < 20_000_000, `the backend has sent ${sent} bytes`);
  client.credit(0, 1000);
  client.request(3, "GET", [], "/small");
  assert.equal((await client.response(3)).body, "small");
  client.reset(1, 8);
  await plane.logged("/large");
  client.peer.socket.destroy();
});

test("a backend that reads slowly slows down the client's stream by its window", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    peer.socket.pause();
    await new Promise(() => {});
  });
  await using plane = await planeTo(upstream.port);
  await using client = await NodeClient.connect(plane.port);
  const stream = client.open({ ":method": "POST", ":path": "/" });
  stream.on("error", () => {});
  let sent = 0;
  const piece = Buffer.alloc(65_536, "x");
  const write = (): void => {
    if (sent >= 100_000_000 || stream.destroyed) return;
    stream.write(piece, write);
    sent += piece.length;
  };
  write();
  await upstream.connection();
  await settled(() => sent);
  assert.ok(sent < 20_000_000, `the client has sent ${sent} bytes`);
});

test("a response that breaks off is reset, and the connection stays open", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    const { start } = await peer.message();
    if (start.includes("/good")) peer.send(reply("good"));
    else {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
      peer.end();
    }
  });
  await using plane = await planeTo(upstream.port);
  const client = await H2Client.connect(plane.port);
  client.request(1, "GET", [], "/bad");
  assert.equal((await client.response(1)).reset, "INTERNAL_ERROR");
  client.request(3, "GET", [], "/good");
  assert.equal((await client.response(3)).body, "good");
  client.peer.socket.destroy();
});

test("a client that disconnects cancels its upstream calls", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await planeTo(upstream.port);
  const client = await H2Client.connect(plane.port);
  client.request(1);
  client.request(3);
  const peers = [await upstream.connection(0), await upstream.connection(1)];
  client.reset(1, 8);
  await Promise.race(peers.map((peer) => peer.closed()));
  assert.equal(peers.filter(({ ended }) => ended === undefined).length, 1);
  client.peer.socket.destroy();
  for (const peer of peers) await peer.closed();
});

test("each limit has its status, and a head that is far too large ends only its connection", async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  await using plane = await planeTo(upstream.port, { maxRequestBodySize: 1000, maxHeadSize: 8000 });
  const client = await H2Client.connect(plane.port);
  client.request(1, "POST", ["content-length", "1001"]);
  client.request(3, "GET", ["x-large", "x".repeat(9000)]);
  assert.equal(H2Client.status(await client.response(1)), 413);
  assert.equal(H2Client.status(await client.response(3)), 431);
  client.request(5);
  assert.equal((await client.response(5)).body, "ok");
  const greedy = await H2Client.connect(plane.port);
  greedy.request(1, "GET", ["x-large", "x".repeat(17_000)]);
  await greedy.closed();
  assert.deepEqual(greedy.goAways, ["0, ENHANCE_YOUR_CALM"]);
  client.request(7);
  assert.equal((await client.response(7)).body, "ok");
  client.peer.socket.destroy();
  await plane.logged("ENHANCE_YOUR_CALM");
});

test("a trace has the same events as one of HTTP/1.1", async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  await using plane = await planeTo(upstream.port);
  const types = (messages: readonly TraceMessage[]): string[] => messages.map(({ type }) => type);
  const old = await plane.trace(async () => {
    const peer = await RawPeer.connect(plane.port);
    peer.send("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nbody");
    await peer.message();
    peer.end();
  });
  const traced = await plane.trace(async () => {
    const client = await H2Client.connect(plane.port);
    client.request(1, "POST", ["content-length", "4"]);
    client.data(1, "body");
    await client.response(1);
    client.peer.socket.destroy();
  });
  assert.deepEqual(types(traced), types(old));
  assert.match(JSON.stringify(traced), /"HTTP\/2"/);
  const refused = await plane.trace(async () => {
    const client = await H2Client.connect(plane.port);
    client.request(1, "GET", ["connection", "close"]);
    await client.response(1);
    client.peer.socket.destroy();
  });
  assert.deepEqual(types(refused), ["requestStarted", "requestFinished"]);
});
