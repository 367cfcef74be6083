import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http2";
import { suite, test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { type PlaneOptions, TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, settled, statusOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";
import { NodeClient } from "../http2/support.ts";

/** Room for two bodies and a half. */
const SIZE = 40_000;
const OPTIONS: PlaneOptions = { frontend: { maxBufferedBytes: 100_000 } };
const SIDE = { failureMode: "failClosed" } as const;
const BUFFER: PolicySet = { buffer: { request: SIDE, response: SIDE } };

const post = (path = "/"): string => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${SIZE + 1}\r\n\r\n`;
const BODY = "x".repeat(SIZE);

async function planeTo(port: number, policies: PolicySet, options = OPTIONS): Promise<TestPlane> {
  const target = { type: "static", host: "127.0.0.1", port } as const;
  const own: PolicySet = { directResponse: { status: 200, body: "z".repeat(200_000) } };
  return TestPlane.start(
    [
      { target, policies },
      { path: "/own", target, policies: own },
    ],
    options,
  );
}

/** Clients that have sent all of a body but its last byte, one after the other, so that it is known who came first. */
async function holding(plane: TestPlane, count: number): Promise<RawPeer[]> {
  const clients: RawPeer[] = [];
  for (let i = 0; i < count; i++) {
    const client = await RawPeer.connect(plane.port);
    client.send(post() + BODY);
    await settled(() => plane.buffers.used);
    clients.push(client);
  }
  return clients;
}

test("clients that send almost all of their bodies and then stop do not block others", async () => {
  await using upstream = await RawUpstream.answering(({ body }) => reply(String(body.length)));
  await using plane = await planeTo(upstream.port, BUFFER);
  const silent = await holding(plane, 2);
  plane.later += 5000;
  const client = await RawPeer.connect(plane.port);
  client.send(`${post("/good")}${BODY}x`);
  assert.equal((await client.message()).body, String(SIZE + 1));
  const gone = await silent[0]?.message();
  assert.equal(statusOf(gone ?? assert.fail()), 408);
  const line = await plane.logged('"http.status":408');
  assert.deepEqual(
    [line.reason, line.error],
    ["InvalidRequest", "request timeout: the body arrives too slowly while other bodies need the room"],
  );
  // The other body got room for its last byte.
  silent[1]?.send("x");
  assert.equal(statusOf((await silent[1]?.message()) ?? assert.fail()), 200);
  assert.equal(plane.buffers.used, 0);
});

test("streams of HTTP/2 that stop give way one by one", async () => {
  await using upstream = await RawUpstream.answering(({ body }) => reply(String(body.length)));
  await using plane = await planeTo(upstream.port, BUFFER);
  await using client = await NodeClient.connect(plane.port);
  const statuses: Promise<unknown>[] = [];
  for (let i = 0; i < 2; i++) {
    const stream = client.open({ ":path": "/", ":method": "POST", "content-length": SIZE + 1 });
    statuses.push(once(stream, "response").then(([headers]) => (headers as IncomingHttpHeaders)[":status"]));
    stream.on("error", () => {});
    stream.write(BODY);
    await until(() => plane.buffers.used === (i + 1) * SIZE);
  }
  plane.later += 5000;
  assert.equal((await client.fetch({ ":path": "/", ":method": "POST" }, BODY)).body, String(SIZE));
  assert.equal(await statuses[0], 408);
});

suite("maxBufferedBytes", () => {
  test("a body for which there is no room is 503; buffered ones continue, and then there is room again", async () => {
    await using upstream = await RawUpstream.answering(({ body }) => reply(String(body.length)));
    await using plane = await planeTo(upstream.port, BUFFER);
    const [first, second, third] = await holding(plane, 3);
    const refused = await third?.message();
    assert.deepEqual([statusOf(refused ?? assert.fail()), refused?.body], [503, "too many buffered bodies"]);
    assert.equal((await plane.logged('"http.status":503')).reason, "Overload");
    assert.equal(plane.buffers.used, 2 * SIZE);
    for (const client of [first, second]) {
      client?.send("x");
      assert.equal((await client?.message())?.body, String(SIZE + 1));
    }
    assert.equal(plane.buffers.used, 0);
    const [again] = await holding(plane, 1);
    again?.send("x");
    assert.equal(statusOf((await again?.message()) ?? assert.fail()), 200);
    assert.equal(plane.buffers.used, 0);
  });

  test("a response for which there is no room is 503; the gateway's own responses need none", async () => {
    await using upstream = await RawUpstream.answering(() => reply("y".repeat(120_000)));
    await using plane = await planeTo(upstream.port, BUFFER);
    const client = await RawPeer.connect(plane.port);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.equal(statusOf(await client.message()), 503);
    client.send("GET /own HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.equal((await client.message()).body.length, 200_000);
    assert.equal(plane.buffers.used, 0);
  });

  test("if there is no room to keep a body for another attempt, it is sent without being kept", async () => {
    await using upstream = await RawUpstream.answering(({ body }) => reply(String(body.length)));
    const policies: PolicySet = { retry: { attempts: 1, backoff: ms(0), codes: [503] } };
    await using plane = await planeTo(upstream.port, policies, { frontend: { maxBufferedBytes: 100 } });
    const client = await RawPeer.connect(plane.port);
    client.send(`${post()}${BODY}x`);
    assert.equal((await client.message()).body, String(SIZE + 1));
    assert.equal(plane.buffers.used, 0);
  });

  test("forwarded bytes are no longer counted, long before the end of the exchange", async () => {
    await using upstream = await RawUpstream.listen();
    const open = { failureMode: "failOpen", maxBytes: 10 } as const;
    await using plane = await planeTo(upstream.port, { buffer: { request: open, response: open } });
    const client = await RawPeer.connect(plane.port);
    client.send(post() + BODY);
    const peer = await upstream.connection();
    await peer.take(BODY);
    assert.equal(plane.buffers.used, 0);
    client.send("x");
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${SIZE + 1}\r\n\r\n${BODY}`);
    await client.take(BODY);
    assert.equal(plane.buffers.used, 0);
    peer.send("x");
    await client.take("x");
  });

  for (const [what, end, policies, options] of [
    ["the client leaves", ([client]: RawPeer[]) => client?.reset(), BUFFER, {}],
    ["the client is too slow", () => {}, BUFFER, { streamIdleTimeout: 50 }],
    ["the body becomes too long", ([client]: RawPeer[]) => client?.send("xx"), BUFFER, { maxBufferSize: SIZE }],
    ["the framing breaks", ([client]: RawPeer[]) => client?.send("y\r\n"), BUFFER, {}],
    ["the request takes too long", () => {}, { ...BUFFER, timeout: { requestTimeout: ms(50) } }, {}],
    ["the backend fails", ([client]: RawPeer[]) => client?.send("x"), BUFFER, {}],
  ] as const)
    test(`nothing stays counted when ${what}`, async () => {
      await using upstream = await RawUpstream.listen(async (peer) => {
        await peer.message();
        peer.reset();
      });
      await using plane = await planeTo(upstream.port, policies as PolicySet, {
        frontend: { ...OPTIONS.frontend, ...options },
      });
      const client = await RawPeer.connect(plane.port);
      const chunked = what === "the framing breaks";
      client.send(
        chunked
          ? `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${SIZE.toString(16)}\r\n${BODY}`
          : post() + BODY,
      );
      await settled(() => plane.buffers.used);
      end([client]);
      await plane.logged("http.status");
      assert.equal(plane.buffers.used, 0);
    });

  test("nothing stays counted when the gateway ends", async () => {
    await using upstream = await RawUpstream.answering(() => reply(""));
    const plane = await planeTo(upstream.port, BUFFER);
    await holding(plane, 2);
    assert.equal(plane.buffers.used, 2 * SIZE);
    await plane[Symbol.asyncDispose]();
    assert.equal(plane.buffers.used, 0);
  });
});
