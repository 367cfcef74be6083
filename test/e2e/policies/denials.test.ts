/**
 * A denial stays a denial, whatever happens to the rest of the call, even if failures of the service are tolerated: `failureMode: allow` and
 * `failOpen`.
 */
import assert from "node:assert/strict";
import type { ServerHttp2Stream } from "node:http2";
import { suite, test } from "node:test";
import { z } from "zod";
import { ms } from "../../../src/base/durations.ts";
import type { ExtAuthz, ExtAuthzHttp } from "../../../src/policies/ext-authz/schema.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { POLICY_SCHEMAS } from "../../../src/policies/schemas.ts";
import { frame } from "../../../src/upstream/grpc/messages.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { CheckResponse } from "../../helpers/envoy/auth.ts";
import { extProcAt, startProcessor } from "../../helpers/envoy/processor.ts";
import { OVER_LIMIT, RateLimitResponse } from "../../helpers/envoy/rate-limit.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { H2Server } from "../upstream-h2/support.ts";

const GET = "GET /a HTTP/1.1\r\nHost: shop.example\r\n\r\n";
/** Long enough for a response on a busy machine, short enough to wait for. */
const SHORT = ms(400);

const HTTP: ExtAuthzHttp = { includeResponseHeaders: [], addRequestHeaders: {}, metadata: {} };

function authz(port: number, more: Partial<ExtAuthz> = {}): PolicySet {
  return {
    extAuthz: {
      target: { type: "static", host: "127.0.0.1", port },
      protocol: { http: HTTP },
      failureMode: "allow",
      includeRequestHeaders: [],
      timeout: SHORT,
      ...more,
    },
  };
}

/** The response to a request with these policies, and how many requests have reached the backend. */
async function askWith(policies: PolicySet, request = GET) {
  let passed = 0;
  await using upstream = await RawUpstream.answering(() => {
    passed++;
    return reply("backend");
  });
  await using plane = await TestPlane.start([
    { target: { type: "static", host: "127.0.0.1", port: upstream.port }, policies },
  ]);
  const response = await RawPeer.ask(plane.port, request);
  return { response, status: statusOf(response), passed };
}

/** What a service does after `DENIED`; only the body is affected. */
const DENIED = "HTTP/1.1 403 No\r\nwww-authenticate: Bearer\r\ncontent-type: text/html\r\n";
const BODIES: Readonly<Record<string, (peer: RawPeer) => void>> = {
  "is too long": (peer) => peer.send(`${DENIED}content-length: 3000000\r\n\r\n${"x".repeat(3_000_000)}`),
  "is cut": (peer) => {
    peer.send(`${DENIED}content-length: 10\r\n\r\nno`);
    peer.end();
  },
  "is reset": (peer) => {
    peer.send(`${DENIED}content-length: 10\r\n\r\nno`);
    setImmediate(() => peer.reset());
  },
  "never comes": (peer) => peer.send(`${DENIED}content-length: 10\r\n\r\n`),
  "has an invalid chunk": (peer) => peer.send(`${DENIED}transfer-encoding: chunked\r\n\r\nxyz\r\n`),
};

suite("extAuthz by HTTP: a denial whose body", () => {
  for (const [what, send] of Object.entries(BODIES))
    test(what, async () => {
      await using service = await RawUpstream.listen(async (peer) => {
        await peer.message();
        send(peer);
      });
      const { response, status, passed } = await askWith(authz(service.port));
      assert.deepEqual([status, passed, response.body], [403, 0, ""]);
      assert.deepEqual(valuesOf(response, "www-authenticate"), ["Bearer"]);
      assert.deepEqual(valuesOf(response, "content-type"), []);
    });

  test("is fine after a 200 that breaks off is a failure, which may pass", async () => {
    await using service = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nno");
      peer.end();
    });
    assert.equal((await askWith(authz(service.port))).status, 200);
    assert.equal((await askWith(authz(service.port, { failureMode: "deny" }))).status, 403);
  });
});

/** A gRPC service that sends a message and then does not end the call properly. */
async function brokenService(message: Uint8Array, end: (stream: ServerHttp2Stream) => void, head = {}) {
  const server = await H2Server.start((stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc", ...head }, { waitForTrailers: true });
    stream.write(frame(message), () => end(stream));
  });
  return server;
}

const ENDS: Readonly<Record<string, (stream: ServerHttp2Stream) => void>> = {
  "is reset": (stream) => stream.close(2),
  "ends with another status": (stream) => {
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "14" }));
    stream.end();
  },
  "ends without a status": (stream) => {
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-a": "1" }));
    stream.end();
  },
  "does not end": () => {},
  "goes on with a cut message": (stream) => {
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(Buffer.from([0, 0, 0, 0, 9, 1]));
  },
  "goes on with a message that allows": (stream) => {
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(frame(CheckResponse.encode({})));
  },
};

suite("a message that denies, when the call then", () => {
  const denied = CheckResponse.encode({
    status: { code: 7 },
    denied_response: { status: { code: 401 }, body: "no" },
  });
  const limited = RateLimitResponse.encode({ overall_code: OVER_LIMIT });
  for (const [what, end] of Object.entries(ENDS)) {
    test(`extAuthz: ${what}`, async () => {
      using service = await brokenService(denied, end);
      const { response, passed } = await askWith(authz(service.port, { protocol: { grpc: {} } }));
      assert.deepEqual([statusOf(response), response.body, passed], [401, "no", 0]);
    });
    test(`remoteRateLimit: ${what}`, async () => {
      using service = await brokenService(limited, end);
      const remoteRateLimit: PolicySet["remoteRateLimit"] = {
        target: { type: "static", host: "127.0.0.1", port: service.port },
        domain: "shop",
        descriptors: [{ type: "requests", entries: [{ key: "all", value: "'1'" }] }],
        failureMode: "failOpen",
        timeout: SHORT,
      };
      const { status, passed } = await askWith({ remoteRateLimit });
      assert.deepEqual([status, passed], [429, 0]);
    });
  }

  test("a message that allows before one that denies is a denial", async () => {
    using service = await brokenService(CheckResponse.encode({}), (stream) => stream.end(frame(denied)));
    assert.equal((await askWith(authz(service.port, { protocol: { grpc: {} } }))).status, 401);
  });
});

suite("extAuthz by gRPC: a response that is not gRPC fails, whatever its grpc-status says", () => {
  const heads = {
    "status 500": { ":status": 500 },
    "text/html": { "content-type": "text/html" },
    "application/grpc-web": { "content-type": "application/grpc-web" },
  };
  for (const [what, head] of Object.entries(heads))
    for (const where of ["head", "trailers"])
      test(`${what}, grpc-status in the ${where}`, async () => {
        const status = where === "head" ? { "grpc-status": "0" } : {};
        const end = (stream: ServerHttp2Stream): void => {
          stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
          stream.end();
        };
        using service = await brokenService(CheckResponse.encode({}), end, { ...head, ...status });
        const { response, passed } = await askWith(
          authz(service.port, { protocol: { grpc: {} }, failureMode: "deny" }),
        );
        assert.deepEqual([statusOf(response), passed], [403, 0]);
      });

  test("trailers do not undo a failure in the head", async () => {
    const end = (stream: ServerHttp2Stream): void => {
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end();
    };
    using service = await brokenService(CheckResponse.encode({}), end, { "grpc-status": "13" });
    const deny = authz(service.port, { protocol: { grpc: {} }, failureMode: "deny" });
    assert.equal((await askWith(deny)).status, 403);
  });
});

suite("extProc: an immediate response ends the exchange", () => {
  const immediate = { immediate_response: { status: { code: 403 } } };
  const options = { requestHeaderMode: "send", requestBodyMode: "buffered", responseHeaderMode: "send" } as const;
  const post = "POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\nhi";
  const cases = {
    "directly after the response about the headers": [{ request_headers: {} }, immediate],
    "with an extended timeout beside it": [{ ...immediate, override_message_timeout: { seconds: 2 } }],
  };
  for (const [what, answers] of Object.entries(cases))
    test(what, async () => {
      await using service = await startProcessor(({ request_headers }) => (request_headers ? answers : "end"));
      const extProc = extProcAt(service.port, options, { failureMode: "failOpen" });
      const { status, passed } = await askWith({ extProc }, post);
      assert.deepEqual([status, passed], [403, 0]);
    });
});

// A gateway on the way to the service rejects a call that has passed too many. Clients can claim any number.
suite("a service that fails", () => {
  // Nothing listens there.
  const target = { type: "static", host: "127.0.0.1", port: 1 } as const;
  const cases: Readonly<Record<string, PolicySet>> = {
    "extAuthz by HTTP": authz(1),
    "extAuthz by gRPC": authz(1, { protocol: { grpc: {} } }),
    extProc: { extProc: extProcAt(1, { requestHeaderMode: "send" }, { failureMode: "failOpen" }) },
    remoteRateLimit: {
      remoteRateLimit: {
        target,
        domain: "shop",
        descriptors: [{ type: "requests", entries: [{ key: "all", value: "'1'" }] }],
        failureMode: "failOpen",
        timeout: SHORT,
      },
    },
  };
  for (const [what, policies] of Object.entries(cases))
    test(`${what}: is tolerated, unless the client claims many hops`, async () => {
      for (const [hops, tolerated] of [
        [0, true],
        [1, true],
        [2, false],
        [7, false],
      ] as const) {
        const field = hops === 0 ? "" : `CDN-Loop: tracegate; hops=${hops}\r\n`;
        const { status, passed } = await askWith(policies, GET.replace("\r\n\r\n", `\r\n${field}\r\n`));
        assert.equal(passed, tolerated ? 1 : 0, `${hops} hops`);
        assert.equal(status === 200, tolerated, `${hops} hops: ${status}`);
      }
    });
});

test("every policy that tolerates failures of a service has its denials tested here", () => {
  const tolerant = Object.entries(POLICY_SCHEMAS).filter(([, { schema }]) =>
    /"fail(ureMode|Open)/.test(JSON.stringify(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }))),
  );
  // `buffer` calls no service.
  assert.deepEqual(tolerant.map(([kind]) => kind).sort(), ["buffer", "extAuthz", "extProc", "remoteRateLimit"]);
});

suite("fields of an authorization service", () => {
  const option = (key: string, value: string) => ({ header: { key, value } });
  const fields = [
    option(":status", "200"),
    option("content-length", "1"),
    option("transfer-encoding", "chunked"),
    option("Connection", "x-ok"),
    option("x-ok", "1"),
  ];
  const service = async (answer: Parameters<typeof CheckResponse.encode>[0]) =>
    brokenService(CheckResponse.encode(answer), (stream) => {
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end();
    });
  const grpc = { protocol: { grpc: {} }, timeout: ms(5000) };

  test("change nothing in the head of an HTTP/1.1 response except fields", async () => {
    using allowing = await service({ ok_response: { response_headers_to_add: fields } });
    const { response } = await askWith(authz(allowing.port, grpc));
    assert.equal(response.body, "backend");
    assert.deepEqual(valuesOf(response, "x-ok"), ["1"]);
    assert.deepEqual(valuesOf(response, "content-length"), ["7"]);
    assert.ok(!response.fields.some((line) => line.startsWith(":") || /^(connection|transfer-encoding):/.test(line)));
    using denying = await service({
      status: { code: 7 },
      denied_response: { status: { code: 403 }, headers: fields, body: "no" },
    });
    const denial = (await askWith(authz(denying.port, grpc))).response;
    assert.deepEqual([statusOf(denial), denial.body, valuesOf(denial, "x-ok").join()], [403, "no", "1"]);
    assert.ok(!denial.fields.some((line) => line.startsWith(":") || /^(connection|transfer-encoding):/.test(line)));
  });

  for (const code of [204, 205, 304])
    test(`a denial with ${code} has no body`, async () => {
      using denying = await service({ status: { code: 7 }, denied_response: { status: { code }, body: "body" } });
      let passed = 0;
      await using upstream = await RawUpstream.answering(() => reply(String(++passed)));
      await using plane = await TestPlane.start([
        { target: { type: "static", host: "127.0.0.1", port: upstream.port }, policies: authz(denying.port, grpc) },
      ]);
      const client = await RawPeer.connect(plane.port);
      client.send(GET);
      const response = await client.message();
      assert.deepEqual([statusOf(response), response.body], [code, ""]);
      // A client would read a body as the beginning of the next response.
      client.send(GET);
      assert.equal(statusOf(await client.message()), code);
      client.socket.destroy();
    });

  test("over HTTP are not copied if they frame the message, and a 205 has no body", async () => {
    const received: string[] = [];
    const head = "HTTP/1.1 200 OK\r\nx-user: ann\r\nconnection: keep-alive, x-hop\r\nx-hop: 1\r\nupgrade: h2c\r\n";
    await using allowing = await RawUpstream.answering(() => `${head}trailer: x\r\ncontent-length: 3\r\n\r\nyes`);
    await using upstream = await RawUpstream.answering(({ fields: lines }) => {
      received.push(...lines.map((line) => line.toLowerCase()));
      return reply("ok");
    });
    const includeResponseHeaders = ["x-user", "content-length", "connection", "x-hop", "upgrade", "trailer"];
    const policies = authz(allowing.port, {
      protocol: { http: { ...HTTP, includeResponseHeaders } },
      timeout: ms(5000),
    });
    await using plane = await TestPlane.start([
      { target: { type: "static", host: "127.0.0.1", port: upstream.port }, policies },
    ]);
    assert.equal(statusOf(await RawPeer.ask(plane.port, GET)), 200);
    assert.deepEqual(
      received.filter((line) => /^(x-user|content-length|connection|x-hop|upgrade|trailer):/.test(line)),
      ["x-user: ann"],
    );
    const framed = ["upgrade: h2c", "trailer: x", "keep-alive: timeout=5", "x-why: busy"];
    await using denying = await RawUpstream.answering(() => reply("no", framed, "205 Reset"));
    // Any 2xx allows, so a 205 passes; the framing fields of a denial do not.
    assert.equal((await askWith(authz(denying.port, { timeout: ms(5000) }))).passed, 1);
    await using refusing = await RawUpstream.answering(() => reply("no", framed, "403 No"));
    const { response } = await askWith(authz(refusing.port, { timeout: ms(5000) }));
    assert.deepEqual(
      response.fields.filter((line) => /^(upgrade|trailer|keep-alive|x-why):/i.test(line)),
      ["x-why: busy"],
    );
    assert.equal(response.body, "no");
  });
});
