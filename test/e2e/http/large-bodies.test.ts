import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

/** More than `maxBufferSize`. */
const LARGE = 3_000_000;
const LARGE_BODY = "x".repeat(LARGE);
const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const HEAD = "POST /it HTTP/1.1\r\nHost: a\r\n";
const KNOWN = `${HEAD}Content-Length: ${LARGE}\r\n\r\n`;
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;

/** A plane with these policies on its route, before a backend that reports the length of each body. */
async function planeWith(policies: PolicySet, answer?: string) {
  const reached: string[] = [];
  const upstream = await RawUpstream.answering((request) => {
    reached.push(`${request.body.length} ${valuesOf(request, "x-size").join()}`);
    return answer ?? reply(`${request.body.length} bytes`);
  });
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  const plane = await TestPlane.start([{ target, policies }]);
  return {
    plane,
    reached,
    async [Symbol.asyncDispose]() {
      await plane[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

const TOO_LARGE = "content too large: a policy reads the body, and it is longer than 2097152 bytes (maxBufferSize)";
const READS = "string(request.body) == 'x'";
const LIMIT = { maxTokens: 5, tokensPerFill: 5, fillInterval: ms(1000), type: "requests" } as const;

/** Policies that decide about a request, or change it, by its body. */
const DECIDING: Record<string, PolicySet> = {
  "transformations: body": { transformations: { request: { body: "string(request.body) + 'y'" } } },
  "transformations: header": { transformations: { request: { set: { "x-size": "string(size(request.body))" } } } },
  "transformations: response header": {
    transformations: { response: { set: { "x-size": "string(size(request.body))" } } },
  },
  "transformations: condition": {
    transformations: { conditional: [{ condition: READS, request: { remove: ["x-a"] } }] },
  },
  directResponse: { directResponse: { status: 200, bodyExpression: "request.body" } },
  "directResponse: condition": { directResponse: { conditional: [{ condition: READS, status: 200 }] } },
  authorization: { authorization: { rules: [{ mode: "deny", expression: READS }] } },
  localRateLimit: { localRateLimit: [{ ...LIMIT, key: "string(request.body)" }] },
};

suite("a request whose body is too long for a policy that reads it gets 413, in log and trace", () => {
  for (const [what, policies] of Object.entries(DECIDING))
    test(what, async () => {
      await using setup = await planeWith(policies);
      const { plane, reached } = setup;
      // Its length is known, so the gateway does not wait for any of the body.
      const client = await RawPeer.connect(plane.port);
      const events = await plane.trace(async () => {
        client.send(KNOWN);
        const response = await client.message();
        assert.deepEqual([statusOf(response), response.body], [413, "content too large"]);
      });
      client.socket.destroy();
      const done = events.find((event) => event.type === "requestFinished");
      assert.deepEqual([done?.status, done?.error], [413, TOO_LARGE]);
      const line = await plane.logged("/it");
      assert.deepEqual([line["http.status"], line.reason, line.error], [413, "InvalidRequest", TOO_LARGE]);
      assert.equal(statusOf(await RawPeer.ask(plane.port, CHUNKED + chunked(LARGE_BODY))), 413);
      assert.deepEqual(reached, []);
    });
});

suite("a policy that works without the body lets it pass, and the trace says so", () => {
  const policies: Record<string, PolicySet> = {
    delay: { delay: { duration: "size(request.body) > 0 ? 60000 : 0" } },
    retry: { retry: { attempts: 1, backoff: ms(0), codes: [], precondition: READS } },
  };
  for (const [kind, policy] of Object.entries(policies))
    test(kind, async () => {
      await using setup = await planeWith(policy);
      const events = await setup.plane.trace(async () => {
        const response = await RawPeer.ask(setup.plane.port, KNOWN + LARGE_BODY);
        assert.equal(response.body, `${LARGE} bytes`);
      });
      const skipped = events.some(
        (event) =>
          event.type === "policy" && event.kind === kind && JSON.stringify(event).includes("the body is unknown"),
      );
      assert.ok(skipped);
    });
});

suite("a policy that does not read the body works with any length", () => {
  const cases: Record<string, readonly [policies: PolicySet, reached: string]> = {
    "headers are transformed": [
      { transformations: { request: { set: { "x-size": "request.headers['content-length']" } } } },
      `${LARGE} ${LARGE}`,
    ],
    "the body is replaced": [{ transformations: { request: { body: "'short'" } } }, "5 "],
    "an earlier alternative applies": [
      {
        transformations: {
          conditional: [
            { condition: "request.method == 'POST'", request: { set: { "x-size": "'any'" } } },
            { condition: READS, request: { remove: ["x-a"] } },
          ],
        },
      },
      `${LARGE} any`,
    ],
  };
  for (const [what, [policies, expected]] of Object.entries(cases))
    test(what, async () => {
      await using setup = await planeWith(policies);
      assert.equal(statusOf(await RawPeer.ask(setup.plane.port, KNOWN + LARGE_BODY)), 200);
      assert.deepEqual(setup.reached, [expected]);
    });
});

suite("a response", () => {
  const ANSWERS = {
    "of known length": `HTTP/1.1 200 OK\r\nContent-Length: ${LARGE}\r\n\r\n${LARGE_BODY}`,
    "in chunks": `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunked(LARGE_BODY)}`,
  };
  const GET = "GET /it HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const [what, answer] of Object.entries(ANSWERS)) {
    for (const response of [{ body: "string(response.body)" }, { set: { "x-a": "string(size(response.body))" } }])
      test(`${what} that is too long for ${Object.keys(response)} is 502, in log and trace`, async () => {
        await using setup = await planeWith({ transformations: { response } }, answer);
        const error = `response ${TOO_LARGE}`;
        const events = await setup.plane.trace(async () => {
          const got = await RawPeer.ask(setup.plane.port, GET);
          assert.deepEqual([statusOf(got), got.body], [502, "response content too large"]);
        });
        const done = events.find((event) => event.type === "requestFinished");
        assert.deepEqual([done?.status, done?.error], [502, error]);
        const line = await setup.plane.logged("/it");
        assert.deepEqual([line["http.status"], line.reason, line.error], [502, "UpstreamFailure", error]);
      });
    test(`${what} passes where nothing reads it, and can be replaced`, async () => {
      await using passing = await planeWith({ transformations: { response: { set: { "x-a": "'b'" } } } }, answer);
      assert.equal((await RawPeer.ask(passing.plane.port, GET)).body.length, LARGE);
      await using replacing = await planeWith({ transformations: { response: { body: "'short'" } } }, answer);
      assert.equal((await RawPeer.ask(replacing.plane.port, GET)).body, "short");
    });
  }
});
