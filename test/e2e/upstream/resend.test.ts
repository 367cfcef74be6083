import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import { Sweeper } from "../../../src/base/sweeper.ts";
import { ANYWHERE } from "../../../src/net/testing/egress.ts";
import { SingleEndpoint } from "../../../src/upstream/balancers/balancer.ts";
import { callUpstream, NEEDS_BODY } from "../../../src/upstream/callouts/http-call.ts";
import { Endpoints } from "../../../src/upstream/endpoints/endpoints.ts";
import { Pools } from "../../../src/upstream/pools/pools.ts";
import { Resolver } from "../../../src/upstream/resolve/resolver.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { closedPort, RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { unreachable } from "../../helpers/unreachable.ts";

/** Responds to the first request of each connection, and closes the connection at the second: a stale one. */
function staleAfterOne(): Promise<RawUpstream> {
  return RawUpstream.listen(async (peer) => {
    const { start } = await peer.message();
    peer.send(start.startsWith("HEAD") ? "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" : reply("answered"));
    await peer.message();
    peer.socket.destroy();
  });
}

const REPEATED = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];
const NOT_REPEATED = ["POST", "PATCH", "LOCK", "PROPFIND"];

suite("a pooled connection that turns out to be stale, without a retry policy", () => {
  for (const method of [...REPEATED, ...NOT_REPEATED])
    test(`${method} of a client ${REPEATED.includes(method) ? "is" : "is not"} replayed`, async () => {
      await using upstream = await staleAfterOne();
      await using plane = await TestPlane.start(upstream.port);
      const client = await RawPeer.connect(plane.port);
      client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      assert.equal(statusOf(await client.message()), 200);
      client.send(`${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`);
      const repeated = REPEATED.includes(method);
      assert.equal(statusOf(await client.message(method === "HEAD")), repeated ? 200 : 503);
      assert.equal(upstream.connections.length, repeated ? 2 : 1);
      client.socket.destroy();
    });

  for (const [method, body, repeated] of [
    ["PUT", "whole", true],
    ["POST", "whole", false],
  ] as const)
    test(`${method} with a body that is completely buffered ${repeated ? "is" : "is not"} replayed`, async () => {
      await using upstream = await staleAfterOne();
      const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
      const policies = { buffer: { request: { failureMode: "failClosed" } } } as const;
      await using plane = await TestPlane.start([{ target, policies }]);
      const client = await RawPeer.connect(plane.port);
      client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.message();
      client.send(`${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      assert.equal(statusOf(await client.message()), repeated ? 200 : 503);
      client.socket.destroy();
    });

  for (const method of [...REPEATED, ...NOT_REPEATED])
    test(`${method} of a callout ${REPEATED.includes(method) ? "is" : "is not"} replayed`, async () => {
      await using upstream = await staleAfterOne();
      const sweeper = new Sweeper();
      const settings = { connectTimeout: ms(10_000), idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
      const endpoints = new Endpoints(
        new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, sweeper),
      );
      const endpoint = endpoints.acquire({ host: "127.0.0.1", port: upstream.port }, 1);
      const call = (how: string): Promise<unknown> =>
        callUpstream(
          new SingleEndpoint(endpoint),
          {
            method: how,
            path: "/",
            headers: [],
            body: new Uint8Array(0),
            timeoutMs: 10_000,
            maxBytes: 100,
            headDecides: NEEDS_BODY,
          },
          () => {},
        );
      await call("GET");
      if (REPEATED.includes(method)) await call(method);
      else await assert.rejects(call(method), { code: "TG_UPSTREAM_FAILED" });
      assert.equal(upstream.connections.length, REPEATED.includes(method) ? 2 : 1);
      endpoints.release([endpoint]);
      sweeper.close();
    });
});

suite("requests that are not replayed, whatever the method, without a retry policy", () => {
  test("a connection that was opened for the request and breaks off", async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.socket.destroy();
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.equal(statusOf(await client.message()), 503);
    assert.equal(upstream.connections.length, 1);
    client.socket.destroy();
  });

  test("a pooled connection that breaks off after the beginning of a response", async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.send(reply("answered"));
      await peer.message();
      peer.send("HTTP/1.1 200 OK\r\nContent-");
      peer.end();
    });
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    for (const status of [200, 503]) {
      client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      assert.equal(statusOf(await client.message()), status);
    }
    assert.equal(upstream.connections.length, 1);
    client.socket.destroy();
  });
});

suite("an attempt that timed out while the backend may still be working on it, with a retry policy", () => {
  const RETRY = { attempts: 1, backoff: ms(0), codes: [] };
  for (const [what, method, precondition, repeated] of [
    ["GET", "GET", undefined, true],
    ["PUT", "PUT", undefined, true],
    ["POST", "POST", undefined, false],
    ["PATCH", "PATCH", undefined, false],
    ["POST whose precondition is about something else", "POST", 'request.path == "/"', false],
    ["POST whose precondition mentions the method in text only", "POST", '"request.method" != ""', false],
    ["POST that the precondition names", "POST", 'request.method in ["GET", "POST"]', true],
  ] as const)
    test(`${what} ${repeated ? "is" : "is not"} retried`, async () => {
      let asked = 0;
      await using upstream = await RawUpstream.listen(async (peer) => {
        await peer.message();
        if (++asked > 1) peer.send(reply("the second one"));
      });
      const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
      const retry = precondition === undefined ? RETRY : { ...RETRY, precondition };
      // Enough time for the request to reach the upstream, on any machine.
      await using plane = await TestPlane.start([
        { target, policies: { retry, timeout: { backendRequestTimeout: ms(200) } } },
      ]);
      const client = await RawPeer.connect(plane.port);
      client.send(`${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`);
      const response = await client.message();
      assert.deepEqual([statusOf(response), asked], repeated ? [200, 2] : [504, 1]);
      client.socket.destroy();
    });

  test("the trace says why there is no further attempt", async () => {
    await using upstream = await RawUpstream.listen();
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const policies = { retry: RETRY, timeout: { backendRequestTimeout: ms(50) } };
    await using plane = await TestPlane.start([{ target, policies }]);
    const client = await RawPeer.connect(plane.port);
    const events = await plane.trace(async () => {
      client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
      await client.message();
    });
    assert.match(JSON.stringify(events), /"retry".*POST is not idempotent/);
    client.socket.destroy();
  });

  test("a POST that timed out before it was sent is retried", async () => {
    await using blocked = await unreachable();
    const target = { type: "static", host: "127.0.0.1", port: blocked.port } as const;
    const policies = { retry: RETRY, timeout: { backendRequestTimeout: ms(50) } };
    await using plane = await TestPlane.start([{ target, policies }]);
    const client = await RawPeer.connect(plane.port);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert.equal(statusOf(await client.message()), 504);
    assert.equal((await plane.logged("Timeout"))["retry.attempt"], 1);
    client.socket.destroy();
  });

  test("a POST that was never sent, because the connect timed out, is retried", async () => {
    const target = { type: "static", host: "127.0.0.1", port: await closedPort() } as const;
    await using plane = await TestPlane.start([{ target, policies: { retry: { ...RETRY, attempts: 2 } } }]);
    const client = await RawPeer.connect(plane.port);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert.equal(statusOf(await client.message()), 503);
    assert.equal((await plane.logged("UpstreamFailure"))["retry.attempt"], 2);
    client.socket.destroy();
  });
});

test("a client cannot set the attempt number of its request, in the head or in the trailers", async () => {
  await using upstream = await RawUpstream.answering((request) =>
    reply([...valuesOf(request, "x-retry-attempt"), ...request.trailers].join()),
  );
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(
    "POST / HTTP/1.1\r\nHost: a\r\nX-Retry-Attempt: 7\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Retry-Attempt: 8\r\nX-Sum: 1\r\n\r\n",
  );
  assert.match((await client.message()).body, /^x-sum: 1$/i);
  client.socket.destroy();
});
