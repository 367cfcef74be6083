import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { TestPlane, type TestRoute } from "../../helpers/data-plane.ts";
import { closedPort, RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

const GET = "GET /it HTTP/1.1\r\nHost: a\r\n\r\n";
const RETRY = { attempts: 2, backoff: ms(0), codes: [503] };

function to(port: number, policies: PolicySet, backendPolicies: PolicySet = {}): TestRoute[] {
  return [{ target: { type: "static", host: "127.0.0.1", port }, policies, backendPolicies }];
}

/** An upstream that fails the first `failures` requests with 503 and then echoes body and attempt. */
function flaky(failures: number): Promise<RawUpstream> {
  let left = failures;
  return RawUpstream.answering((request) => {
    if (left-- > 0) return reply("busy", [], "503 Service Unavailable");
    return reply(
      `${valuesOf(request, "x-retry-attempt").join()}|${valuesOf(request, "x-added").join()}|${request.body}`,
    );
  });
}

test("a status that the policy names is retried; the request carries the number of the attempt", async () => {
  await using upstream = await flaky(2);
  await using plane = await TestPlane.start(to(upstream.port, { retry: RETRY }));
  const response = await RawPeer.ask(plane.port, GET);
  assert.equal(statusOf(response), 200);
  assert.equal(response.body, "2||");
});

test("the trace says why there is another attempt", async () => {
  const reasonsOf = async (port: number, retry: object): Promise<unknown[]> => {
    await using plane = await TestPlane.start(to(port, { retry: { ...RETRY, attempts: 1, ...retry } }));
    const events = await plane.trace(async () => void (await RawPeer.ask(plane.port, GET)));
    return events.flatMap((event) =>
      event.type === "policy" && event.kind === "retry" && event.result.type === "apply"
        ? [(event.result.data as { readonly reason?: unknown }).reason]
        : [],
    );
  };
  await using upstream = await flaky(2);
  assert.deepEqual(await reasonsOf(upstream.port, {}), ["status 503"]);
  const port = await closedPort();
  assert.deepEqual(await reasonsOf(port, {}), [`connect ECONNREFUSED 127.0.0.1:${port}`]);
});

test("when no attempt is left, the last response is forwarded", async () => {
  await using upstream = await flaky(3);
  await using plane = await TestPlane.start(to(upstream.port, { retry: RETRY }));
  const response = await RawPeer.ask(plane.port, GET);
  assert.equal(statusOf(response), 503);
  assert.equal(response.body, "busy");
});

test("each attempt has the whole body, in its own framing", async () => {
  const chunked =
    "POST /it HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
  const sized = "POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world";
  for (const request of [chunked, sized]) {
    await using upstream = await flaky(2);
    await using plane = await TestPlane.start(to(upstream.port, { retry: RETRY }));
    const response = await RawPeer.ask(plane.port, request);
    assert.equal(response.body, "2||hello world");
  }
});

test("a body of more than 64 KiB is not kept: the first response is forwarded", async () => {
  await using upstream = await flaky(1);
  await using plane = await TestPlane.start(to(upstream.port, { retry: RETRY }));
  const body = "x".repeat(64 * 1024 + 1);
  const response = await RawPeer.ask(
    plane.port,
    `POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  assert.equal(statusOf(response), 503);
});

test("backend policies start from the request as it was, at each attempt", async () => {
  await using upstream = await flaky(2);
  await using plane = await TestPlane.start(
    to(upstream.port, { retry: RETRY }, { requestHeaderModifier: { add: { "x-added": "once" } } }),
  );
  assert.equal((await RawPeer.ask(plane.port, GET)).body, "2|once|");
});

test("attempts count whatever ends them, and the response of the last one is final", async () => {
  // A status, a connection that breaks off, a late response, and one attempt more than the policy has.
  let asked = 0;
  await using upstream = await RawUpstream.listen(async (peer) => {
    for (;;) {
      const request = await peer.message();
      const number = ++asked;
      if (number === 1) peer.send(reply("busy", [], "503 Service Unavailable"));
      else if (number === 2) peer.socket.destroy();
      else if (number === 4) peer.send(reply(valuesOf(request, "x-retry-attempt").join()));
    }
  });
  const timeout = { backendRequestTimeout: ms(100) };
  await using plane = await TestPlane.start(to(upstream.port, { retry: { ...RETRY, attempts: 3 }, timeout }));
  assert.equal((await RawPeer.ask(plane.port, GET)).body, "3");
  asked = 0;
  await plane.configure(to(upstream.port, { retry: RETRY, timeout }));
  const response = await RawPeer.ask(plane.port, GET);
  assert.deepEqual([statusOf(response), asked], [504, 3]);
});

test("requests to an upstream that breaks off before a response, or responds too late, are retried", async () => {
  let first = true;
  await using breaking = await RawUpstream.listen(async (peer) => {
    const request = await peer.message();
    if (first) {
      first = false;
      peer.socket.destroy();
    } else peer.send(reply(valuesOf(request, "x-retry-attempt").join()));
  });
  await using plane = await TestPlane.start(to(breaking.port, { retry: { ...RETRY, codes: [] } }));
  assert.equal((await RawPeer.ask(plane.port, GET)).body, "1");

  let calls = 0;
  await using slow = await RawUpstream.listen(async (peer) => {
    await peer.message();
    if (++calls > 1) peer.send(reply("in time"));
  });
  const timeout = { backendRequestTimeout: ms(50) };
  await using impatient = await TestPlane.start(to(slow.port, { retry: RETRY, timeout }));
  assert.equal((await RawPeer.ask(impatient.port, GET)).body, "in time");
});

test("requestTimeout ends the wait for the next attempt too", async () => {
  await using upstream = await flaky(1);
  const timeout = { requestTimeout: ms(50), backendRequestTimeout: ms(0) };
  const retry = { ...RETRY, backoff: ms(3_600_000) };
  await using plane = await TestPlane.start(to(upstream.port, { retry, timeout }));
  const response = await RawPeer.ask(plane.port, GET);
  assert.deepEqual([statusOf(response), response.body], [504, "request timeout"]);
});

test("a condition over the response decides; a precondition over the request allows", async () => {
  const policy = { attempts: 1, backoff: ms(0), codes: [], condition: 'response.headers["x-again"] == "yes"' };
  for (const [precondition, expected] of [
    ['request.method == "GET"', "1"],
    ['request.method == "PUT"', ""],
    ['string(request.body) == "repeat"', "1"],
    ['string(request.body) == "once"', ""],
  ]) {
    let first = true;
    await using upstream = await RawUpstream.answering((request) => {
      const fields = first ? ["x-again: yes"] : [];
      first = false;
      return reply(valuesOf(request, "x-retry-attempt").join(), fields);
    });
    await using plane = await TestPlane.start(
      to(upstream.port, { retry: { ...policy, ...(precondition !== undefined && { precondition }) } }),
    );
    const request = "GET /it HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nrepeat";
    assert.equal((await RawPeer.ask(plane.port, request)).body, expected, precondition);
  }
});
