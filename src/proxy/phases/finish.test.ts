import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane, type TestRoute } from "../../../test/helpers/data-plane.ts";
import { closedPort, RawPeer, RawUpstream, reply } from "../../../test/helpers/raw-peer.ts";
import { ms } from "../../base/durations.ts";
import type { PolicySet } from "../../policies/policy-set.ts";

/** How a request ends, by its path, and what the access log says of it. */
const ENDS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "/ok": { "http.status": 200, reason: undefined, error: undefined, bytes: 2 },
  "/direct": { "http.status": 418, reason: "DirectResponse", bytes: 5 },
  "/refused": { "http.status": 503, reason: "UpstreamFailure", bytes: 20 },
  "/retried": { "http.status": 503, reason: "UpstreamFailure", "retry.attempt": 2 },
  "/cut": { "http.status": 200, reason: "UpstreamFailure", bytes: 4 },
  "/gone": { "http.status": 0, bytes: 0 },
  "/late": { "http.status": 504, reason: "Timeout", bytes: 15 },
  "/buffered": { "http.status": 413, bytes: 0 },
};

test("however a request ends, it is counted and logged once, and releases everything", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    for (;;) {
      const { start } = await peer.message();
      if (start.includes("/ok")) peer.send(reply("ok"));
      else if (start.includes("/cut")) {
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
        peer.end();
      }
    }
  });
  await using silent = await RawUpstream.listen();
  const refusing = await closedPort();
  const at = (path: string, policies: PolicySet = {}, port = upstream.port): TestRoute => ({
    path,
    target: { type: "static", host: "127.0.0.1", port },
    policies,
  });
  await using plane = await TestPlane.start([
    at("/ok"),
    at("/direct", { directResponse: { status: 418, body: "short" } }),
    at("/refused", {}, refusing),
    at("/retried", { retry: { attempts: 2, backoff: ms(0), codes: [] } }, refusing),
    at("/cut"),
    at("/gone", {}, silent.port),
    at("/late", { timeout: { requestTimeout: ms(40) } }, silent.port),
    at("/buffered", { buffer: { request: { failureMode: "failClosed", maxBytes: 3 } } }),
  ]);
  for (const path of Object.keys(ENDS)) {
    const client = await RawPeer.connect(plane.port);
    client.send(`POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n`);
    if (path === "/gone") {
      await (await silent.connection()).take("0\r\n\r\n");
      client.socket.destroy();
    }
    const { "bytes.sent": bytes, ...line } = await plane.logged(`"${path}"`);
    const expected = ENDS[path] ?? {};
    const known: Readonly<Record<string, unknown>> = { ...line, bytes };
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, known[name]])), expected, path);
    client.socket.destroy();
  }
  for (const path of Object.keys(ENDS))
    assert.equal(plane.lines.filter((line) => line.includes(`"${path}"`)).length, 1, path);
  assert.deepEqual([plane.metrics.inFlight.count, plane.buffers.used], [0, 0]);
});
