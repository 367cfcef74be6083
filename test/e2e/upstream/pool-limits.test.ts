import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import type { TestRoute } from "../../helpers/data-plane.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";
import { type Frame, HEADERS, type RawFrames, rawServer } from "../upstream-h2/frames.ts";

const FULL = "too many requests to the backend";

function to(port: number, http: PolicySet["http"] & object, policies: PolicySet = {}): TestRoute[] {
  return [{ target: { type: "static", host: "127.0.0.1", port }, policies, backendPolicies: { http } }];
}

async function send(plane: TestPlane, path: string): Promise<RawPeer> {
  const client = await RawPeer.connect(plane.port);
  client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  return client;
}

/** Waits until the endpoint has `pending` requests, those that wait for a connection included. */
async function under(plane: TestPlane, pending: number): Promise<void> {
  await until(() => plane.endpoints.stats()[0]?.pending === pending, `${pending} requests in progress`);
}

/** Failures of the endpoints since their last success. */
function failuresOf(plane: TestPlane): readonly number[] {
  return plane.endpoints.stats().map(({ consecutiveFailures }) => consecutiveFailures);
}

/** The path of the next request, which gets no response. */
async function pathOf(peer: RawPeer): Promise<string> {
  return (await peer.message()).start.split(" ")[1] ?? "";
}

suite("HTTP/1.1", () => {
  test("requests beyond maxConnections wait, first come first served; beyond maxPendingRequests they are 503", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(to(upstream.port, { maxConnections: 1, maxPendingRequests: 2 }));
    const first = await send(plane, "/1");
    const peer = await upstream.connection();
    assert.equal(await pathOf(peer), "/1");
    const second = await send(plane, "/2");
    await under(plane, 2);
    const third = await send(plane, "/3");
    await under(plane, 3);
    const fourth = await RawPeer.connect(plane.port);
    const events = await plane.trace(async () => {
      fourth.send("GET /4 HTTP/1.1\r\nHost: a\r\n\r\n");
      const refused = await fourth.message();
      assert.deepEqual([statusOf(refused), refused.body], [503, FULL]);
    });
    const why = "no connection is free and 2 requests wait";
    assert.equal(events.find((each) => each.type === "backendCallResult")?.error, why);
    const line = await plane.logged("/4");
    assert.deepEqual([line.error, line.reason], [`${FULL}: ${why}`, "UpstreamFailure"]);
    // It says nothing about the endpoint.
    assert.deepEqual(
      plane.endpoints.stats().map(({ consecutiveFailures, pending }) => [consecutiveFailures, pending]),
      [[0, 3]],
    );
    for (const [client, next] of [
      [first, "/2"],
      [second, "/3"],
      [third, undefined],
    ] as const) {
      peer.send(reply("answered"));
      assert.equal((await client.message()).body, "answered");
      if (next !== undefined) assert.equal(await pathOf(peer), next);
    }
    assert.equal(upstream.connections.length, 1);
    for (const client of [first, second, third, fourth]) client.socket.destroy();
  });

  test("a client that leaves gives up its place in the queue", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(to(upstream.port, { maxConnections: 1, maxPendingRequests: 1 }));
    const first = await send(plane, "/1");
    const peer = await upstream.connection();
    assert.equal(await pathOf(peer), "/1");
    const leaving = await send(plane, "/leaves");
    await under(plane, 2);
    leaving.socket.destroy();
    await under(plane, 1);
    const staying = await send(plane, "/stays");
    await under(plane, 2);
    peer.send(reply("answered"));
    assert.equal(await pathOf(peer), "/stays");
    for (const client of [first, staying]) client.socket.destroy();
  });

  for (const [what, policies, connectTimeout] of [
    ["requestTimeout", { timeout: { requestTimeout: ms(50) } }, 10_000],
    ["backendRequestTimeout", { timeout: { backendRequestTimeout: ms(50) } }, 10_000],
    ["connectTimeout", {}, 50],
  ] as const)
    test(`${what} ends the wait with 504`, async () => {
      await using upstream = await RawUpstream.listen();
      const http = { maxConnections: 1, maxPendingRequests: 1 } as const;
      await using plane = await TestPlane.start(
        [...to(upstream.port, http), { ...(to(upstream.port, http, policies)[0] as TestRoute), path: "/waits" }],
        { pool: { connectTimeout } },
      );
      const first = await send(plane, "/1");
      const peer = await upstream.connection();
      assert.equal(await pathOf(peer), "/1");
      const late = await send(plane, "/waits");
      assert.equal(statusOf(await late.message()), 504);
      assert.deepEqual(failuresOf(plane), [0]);
      const next = await send(plane, "/next");
      await under(plane, 2);
      peer.send(reply("answered"));
      assert.equal(await pathOf(peer), "/next");
      assert.equal(upstream.connections.length, 1);
      for (const client of [first, late, next]) client.socket.destroy();
    });

  test("a connection that ends, or cannot be opened, makes room for another", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(to(upstream.port, { maxConnections: 1 }));
    const first = await send(plane, "/1");
    const peer = await upstream.connection();
    assert.equal(await pathOf(peer), "/1");
    const second = await send(plane, "/2");
    await under(plane, 2);
    peer.send(reply("last", ["Connection: close"]));
    assert.equal((await first.message()).body, "last");
    const other = await upstream.connection(1);
    assert.equal(await pathOf(other), "/2");
    const third = await send(plane, "/3");
    await under(plane, 2);
    other.reset();
    assert.equal(statusOf(await second.message()), 503);
    assert.equal(await pathOf(await upstream.connection(2)), "/3");
    for (const client of [first, second, third]) client.socket.destroy();
  });

  test("with maxPendingRequests 0 no request waits", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(to(upstream.port, { maxConnections: 1, maxPendingRequests: 0 }));
    const first = await send(plane, "/1");
    assert.equal(await pathOf(await upstream.connection()), "/1");
    const second = await send(plane, "/2");
    assert.equal(statusOf(await second.message()), 503);
    for (const client of [first, second]) client.socket.destroy();
  });

  test("a waiting tunnel gets a new connection, not one that has carried requests", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(to(upstream.port, { maxConnections: 1 }), {
      frontend: { connect: "route" },
    });
    const client = await send(plane, "/1");
    const used = await upstream.connection();
    assert.equal(await pathOf(used), "/1");
    const tunnel = await RawPeer.connect(plane.port);
    tunnel.send("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n");
    await under(plane, 2);
    used.send(reply("answered"));
    await client.message();
    assert.equal(statusOf(await tunnel.message(true)), 200);
    await used.closed();
    tunnel.send("raw");
    await (await upstream.connection(1)).take("raw");
    for (const each of [client, tunnel]) each.socket.destroy();
  });

  test("each tunnel takes the place of an idle connection, and is counted", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(to(upstream.port, { maxConnections: 1, maxPendingRequests: 0 }), {
      frontend: { connect: "route" },
    });
    for (const round of [0, 1]) {
      const client = await send(plane, "/1");
      const unused = await upstream.connection(round * 2);
      assert.equal(await pathOf(unused), "/1");
      unused.send(reply("answered"));
      await client.message();
      client.send("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n");
      assert.equal(statusOf(await client.message(true)), 200);
      await unused.closed();
      const other = await send(plane, "/2");
      assert.equal(statusOf(await other.message()), 503);
      for (const each of [client, other]) each.socket.destroy();
      (await upstream.connection(round * 2 + 1)).end();
      await until(() => plane.endpoints.stats()[0]?.pool.active === 0, "the end of the tunnel");
    }
  });
});

suite("HTTP/2", () => {
  const http = { version: "HTTP/2.0", maxConnections: 1, maxPendingRequests: 1 } as const;

  test("streams beyond the server's limit wait, first come first served; the next is 503", async () => {
    const streams: Frame[] = [];
    let frames: RawFrames | undefined;
    await using server = await rawServer(async (each) => {
      frames = each;
      for (;;) streams.push(await each.next(HEADERS));
    }, 1);
    await using plane = await TestPlane.start(to(server.port, http));
    const first = await send(plane, "/1");
    await until(() => streams.length === 1, "the first stream");
    const second = await send(plane, "/2");
    await under(plane, 2);
    const third = await send(plane, "/3");
    const refused = await third.message();
    assert.deepEqual([statusOf(refused), refused.body], [503, FULL]);
    assert.equal(streams.length, 1);
    frames?.respond(streams[0]?.stream ?? 0, {}, 1);
    assert.equal(statusOf(await first.message()), 200);
    await until(() => streams.length === 2, "the second stream");
    frames?.respond(streams[1]?.stream ?? 0, {}, 1);
    assert.equal(statusOf(await second.message()), 200);
    assert.equal(server.connections.length, 1);
    for (const client of [first, second, third]) client.socket.destroy();
  });

  test("the wait for a stream ends with connectTimeout, and with the client", async () => {
    const streams: Frame[] = [];
    await using server = await rawServer(async (each) => {
      for (;;) streams.push(await each.next(HEADERS));
    }, 1);
    await using plane = await TestPlane.start(to(server.port, http), { pool: { connectTimeout: ms(200) } });
    const first = await send(plane, "/1");
    await until(() => streams.length === 1, "the first stream");
    const leaving = await send(plane, "/2");
    await under(plane, 2);
    leaving.socket.destroy();
    await under(plane, 1);
    const late = await send(plane, "/3");
    assert.equal(statusOf(await late.message()), 504);
    assert.deepEqual(failuresOf(plane), [0]);
    for (const client of [first, late]) client.socket.destroy();
  });
});

suite("TCP", () => {
  test("connections beyond maxConnections wait; beyond maxPendingRequests they are closed and logged", async () => {
    await using upstream = await RawUpstream.listen();
    const tcp = { maxConnections: 1, maxPendingRequests: 1 };
    const backends = [{ host: `127.0.0.1:${upstream.port}`, policies: { tcp } }];
    await using gateway = await TestGateway.start({
      binds: [{ port: 0, listeners: [{ protocol: "TCP", tcpRoutes: [{ backends }] }] }],
    });
    const first = await RawPeer.connect(gateway.port());
    const peer = await upstream.connection();
    first.send("one");
    await peer.take("one");
    const [second, third] = [await RawPeer.connect(gateway.port()), await RawPeer.connect(gateway.port())];
    const [refused, waiting] = await Promise.race([
      second.closed().then(() => [second, third] as const),
      third.closed().then(() => [third, second] as const),
    ]);
    assert.equal(refused.received, "");
    const where = "binds[0].listeners[0].tcpRoutes[0].backends[0]";
    const error = `${FULL}: no connection is free and 1 requests wait, at ${where}`;
    await gateway.until(() => gateway.lines.some((line) => line.error === error), "the reason in the log");
    waiting.send("two");
    first.socket.destroy();
    await peer.closed();
    peer.socket.destroy();
    const next = await upstream.connection(1);
    await next.take("two");
    for (const client of [first, second, third]) client.socket.destroy();
  });
});
