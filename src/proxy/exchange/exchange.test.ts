import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane, type TestRoute } from "../../../test/helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, settled, statusOf } from "../../../test/helpers/raw-peer.ts";
import { ms } from "../../base/durations.ts";
import type { PolicySet } from "../../policies/policy-set.ts";

const GET = "GET /it HTTP/1.1\r\nHost: a\r\n\r\n";
const POST = "POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";

function to({ port }: { readonly port: number }, policies: PolicySet = {}): TestRoute[] {
  return [{ target: { type: "static", host: "127.0.0.1", port }, policies }];
}

/** Waits until the other side has ended the connection, in whatever way. */
async function ended(peer: RawPeer): Promise<void> {
  await peer.until(() => false, "the end").catch(() => {});
  assert.notEqual(peer.ended, undefined);
}

/** The phases of the requests in progress. */
function phases(plane: TestPlane): unknown[] {
  const binds = plane.plane.tasks() as { connections: { exchange?: { phase: string } }[] }[];
  return binds.flatMap(({ connections }) => connections.map(({ exchange }) => exchange?.phase));
}

test("the task dump names the phase that a request waits in", async () => {
  await using upstream = await RawUpstream.listen();
  const buffer = { failureMode: "failClosed", maxBytes: 100 } as const;
  await using plane = await TestPlane.start(to(upstream, { buffer: { request: buffer, response: buffer } }));
  const client = await RawPeer.connect(plane.port);
  client.send(`${POST}12345`);
  await settled(() => plane.buffers.used);
  assert.deepEqual(phases(plane), ["route-policies"]);
  client.send("67890");
  const peer = await upstream.connection();
  await peer.take("67890");
  assert.deepEqual(phases(plane), ["attempt"]);
  peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nresponse\r\n");
  await settled(() => plane.buffers.used);
  assert.deepEqual(phases(plane), ["response-policies"]);
  // Longer than the buffer: the gateway responds itself, and the connection waits for the next request.
  peer.send(`64\r\n${"x".repeat(100)}\r\n`);
  assert.equal(statusOf(await client.message()), 502);
  assert.deepEqual(phases(plane), [undefined]);
  client.send(POST);
  await settled(() => plane.metrics.inFlight.count);
  assert.deepEqual(phases(plane), ["route-policies"]);
});

test("a body in transit is in the phase respond, and may take longer than requestTimeout", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(to(upstream, { timeout: { requestTimeout: ms(1500) } }));
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  const peer = await upstream.connection();
  await peer.take("\r\n\r\n");
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
  await client.take("half");
  assert.deepEqual(phases(plane), ["respond"]);
  // Its deadline has passed when that of a later request has.
  const later = await RawPeer.connect(plane.port);
  later.send(GET.replace("/it", "/later"));
  assert.equal(statusOf(await later.message()), 504);
  peer.send("full");
  await client.take("full");
  assert.equal((await plane.logged("/it"))["http.status"], 200);
});

test("requestTimeout covers all attempts together, also after a response that was not passed on", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    // The second attempt gets no response.
    if (peer === upstream.connections[0]) {
      peer.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      peer.end();
    }
  });
  const retry = { attempts: 3, backoff: ms(0), codes: [503] };
  await using plane = await TestPlane.start(to(upstream, { retry, timeout: { requestTimeout: ms(1000) } }));
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  const response = await client.message();
  assert.deepEqual([statusOf(response), response.body], [504, "request timeout"]);
  const { "http.status": status, "retry.attempt": attempt } = await plane.logged("/it");
  assert.deepEqual([status, attempt], [504, 1]);
});

test("a client that leaves ends the attempt, and its connection with it", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(to(upstream));
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  const peer = await upstream.connection();
  await peer.take("\r\n\r\n");
  client.socket.destroy();
  await ended(peer);
  const line = await plane.logged("/it");
  assert.deepEqual([line["http.status"], plane.metrics.inFlight.count], [0, 0]);
});

test("a client that leaves during the backoff ends the retries", async () => {
  const asked: string[] = [];
  const { promise: first, resolve: onFirst } = Promise.withResolvers<void>();
  await using upstream = await RawUpstream.answering(({ start }) => {
    asked.push(start.split(" ")[1] ?? "");
    onFirst();
    return reply("", [], "503 Service Unavailable");
  });
  const retry = { attempts: 4, backoff: ms(400), codes: [503] };
  await using plane = await TestPlane.start(to(upstream, { retry }));
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  await first;
  client.socket.destroy();
  await plane.logged("/it");
  // Four times at least half of the backoff is longer than one and a half of it, which the first client's retry would take.
  const other = await RawPeer.connect(plane.port);
  other.send(GET.replace("/it", "/other"));
  assert.equal(statusOf(await other.message()), 503);
  assert.deepEqual(asked, ["/it", ...Array.from({ length: 5 }, () => "/other")]);
});

test("when an upstream breaks off after its head, the client's connection is cut, so the body does not look complete", async () => {
  await using upstream = await RawUpstream.listen();
  const retry = { attempts: 3, backoff: ms(0), codes: [503] };
  await using plane = await TestPlane.start(to(upstream, { retry }));
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  const peer = await upstream.connection();
  await peer.take("\r\n\r\n");
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
  await client.take("half");
  peer.reset();
  await ended(client);
  assert.equal(client.received, "");
  const line = await plane.logged("/it");
  assert.deepEqual([line["http.status"], line.reason], [200, "UpstreamFailure"]);
  assert.match(String(line.error), /^upstream call failed: /);
  assert.equal(upstream.connections.length, 1, "no retry once the client has seen a head");
});

test("the rest of a body that a policy has replaced is not read, and the client's connection stays usable", async () => {
  await using upstream = await RawUpstream.answering(({ start }) =>
    start.startsWith("GET /next")
      ? reply("next")
      : `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n${"x".repeat(20)}\r\n`,
  );
  const response = { failureMode: "failClosed", maxBytes: 10 } as const;
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  await using plane = await TestPlane.start([
    { target, policies: { buffer: { response } } },
    { path: "/next", target },
  ]);
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  assert.equal(statusOf(await client.message()), 502);
  await ended(await upstream.connection());
  client.send(GET.replace("/it", "/next"));
  assert.equal((await client.message()).body, "next");
});
