import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { TestCollector } from "../../helpers/otlp/collector.ts";
import { attributesOf } from "../../helpers/otlp/decode.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";

const BODIES = { add: { asked: "string(request.body)", answered: "string(response.bodyPrefix)" } };

function post(body: string, path = "/"): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

test("bodies that only the access log names are recorded while they stream: no piece is delayed", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port, { frontend: { accessLog: BODIES } });
  const client = await RawPeer.connect(plane.port);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
  const backend = await upstream.connection();
  await backend.take("3\r\none\r\n");
  client.send("3\r\ntwo\r\n0\r\n\r\n");
  await backend.take("3\r\ntwo\r\n0\r\n\r\n");
  backend.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nthree\r\n");
  await client.take("5\r\nthree\r\n");
  backend.send("4\r\nfour\r\n0\r\n\r\n");
  await client.take("4\r\nfour\r\n0\r\n\r\n");
  const { asked, answered } = await plane.logged('"request"');
  assert.deepEqual([asked, answered], ["onetwo", "threefour"]);
  client.socket.destroy();
});

test("the log has the beginning of a long body, and the whole body arrives", async () => {
  await using upstream = await RawUpstream.answering(({ body }) => reply(body));
  const accessLog = { add: { asked: "size(request.body)", answered: "size(response.body)" } };
  await using plane = await TestPlane.start(upstream.port, { frontend: { accessLog } });
  const client = await RawPeer.connect(plane.port);
  const body = "x".repeat(300_000);
  client.send(post(body));
  assert.equal((await client.message()).body, body);
  const { asked, answered } = await plane.logged('"request"');
  assert.deepEqual([asked, answered], [65_536, 65_536]);
  client.socket.destroy();
});

test("a policy gets the same bodies as without the log: a request with one that is too long is rejected", async () => {
  await using upstream = await RawUpstream.answering(({ body }) => reply(body));
  const set = { "x-body": "string(request.body)" };
  await using plane = await TestPlane.start(
    [
      {
        target: { type: "static", host: "127.0.0.1", port: upstream.port },
        policies: { transformations: { request: { set } } },
      },
    ],
    { frontend: { accessLog: BODIES, maxBufferSize: 4 } },
  );
  const client = await RawPeer.connect(plane.port);
  client.send(post("longer"));
  assert.equal(statusOf(await client.message()), 413);
  const { asked, answered } = await plane.logged('"request"');
  assert.deepEqual(
    [asked, answered],
    ["", "cont"],
    "nothing was read of the request, and the response is the gateway's own",
  );
  client.socket.destroy();
});

test("the gateway's own responses are recorded; bytes in a tunnel are not", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.take("\r\n\r\n");
    peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\nhello");
    await peer.take("bye");
    peer.end();
  });
  await using plane = await TestPlane.start(
    [{ path: "/socket", target: { type: "static", host: "127.0.0.1", port: upstream.port } }],
    { frontend: { accessLog: { add: { ...BODIES.add, known: "has(response.body)" } } } },
  );
  const lost = await RawPeer.connect(plane.port);
  lost.send(post("", "/nowhere"));
  const { body } = await lost.message();
  assert.ok(body.length > 0);
  const { asked, answered } = await plane.logged("/nowhere");
  assert.deepEqual([asked, answered], ["", body]);
  const client = await RawPeer.connect(plane.port);
  client.send("GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n");
  await client.take("hello");
  client.send("bye");
  client.end();
  await client.closed();
  const line = await plane.logged('"/socket"');
  assert.deepEqual([line["http.status"], line.answered, line.known], [101, undefined, false]);
  lost.socket.destroy();
});

test("labels of metrics, log records and spans may name bodies as well", async () => {
  await using upstream = await RawUpstream.answering(({ body }) => reply(`{"kind":"${body}"}`));
  await using collector = await TestCollector.http();
  const to = { host: `127.0.0.1:${collector.port}`, protocol: "http" };
  await using gateway = await TestGateway.start({
    config: { workerThreads: 1, metrics: { fields: { add: { kind: "json(response.body).kind" } } } },
    frontendPolicies: {
      accessLog: { otlp: { ...to, fields: { add: { asked: "string(request.body)" } } } },
      tracing: { ...to, randomSampling: true, attributes: { answered: "string(response.body)" } },
    },
    binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }] }] }],
  });
  const client = await RawPeer.connect(gateway.port());
  client.send(post("tea"));
  assert.equal(statusOf(await client.message()), 200);
  const entries = await collector.until(({ length }) => length === 3);
  const found = entries.map(({ attributes }) => attributesOf(attributes));
  assert.equal(found.filter(({ asked }) => asked === "tea").length, 1);
  assert.equal(found.filter(({ answered }) => answered === '{"kind":"tea"}').length, 1);
  const metrics = await (await fetch(`${gateway.url("stats")}/metrics`)).text();
  assert.match(metrics, /^tracegate_requests_total\{.*kind="tea".*\} 1$/m);
  client.socket.destroy();
});
