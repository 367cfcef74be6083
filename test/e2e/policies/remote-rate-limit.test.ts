import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import type { RemoteRateLimit } from "../../../src/policies/remote-rate-limit/schema.ts";
import { TestPlane, type TestRoute } from "../../helpers/data-plane.ts";
import { OVER_LIMIT, RateLimitRequest, RateLimitResponse, SHOULD_RATE_LIMIT } from "../../helpers/envoy/rate-limit.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

type Question = ReturnType<typeof RateLimitRequest.decode>;
type Answer = Parameters<typeof RateLimitResponse.encode>[0];

const at = (port: number) => ({ type: "static", host: "127.0.0.1", port }) as const;

function policy(port: number, more: Partial<RemoteRateLimit> = {}): PolicySet {
  return {
    remoteRateLimit: {
      target: at(port),
      domain: "shop",
      descriptors: [{ type: "requests" as const, entries: [{ key: "user", value: "request.headers['x-user']" }] }],
      failureMode: "failClosed",
      timeout: ms(5000),
      ...more,
    },
  };
}

async function limiter(answer: (question: Question) => Answer) {
  const questions: Question[] = [];
  const server = await GrpcServer.start({
    [SHOULD_RATE_LIMIT]: {
      unary(message) {
        const question = RateLimitRequest.decode(message);
        questions.push(question);
        return RateLimitResponse.encode(answer(question));
      },
    },
  });
  return Object.assign(server, { questions });
}

const backend = () =>
  RawUpstream.answering((request) => reply(request.fields.filter((line) => line.startsWith("x-")).join()));
const route = (port: number, policies: PolicySet): TestRoute[] => [{ target: at(port), policies }];

async function ask(plane: TestPlane, user?: string) {
  const client = await RawPeer.connect(plane.port);
  client.send(`GET / HTTP/1.1\r\nHost: a\r\n${user === undefined ? "" : `X-User: ${user}\r\n`}\r\n`);
  const response = await client.message();
  client.socket.destroy();
  return response;
}

test("the service gets domain and descriptors, with costs and limits; its headers go both ways", async () => {
  await using service = await limiter(() => ({
    overall_code: 1,
    statuses: [
      {
        code: 1,
        limit_remaining: 9,
        current_limit: { requests_per_unit: 10, unit: 1 },
        duration_until_reset: { seconds: 1 },
      },
      {
        code: 1,
        limit_remaining: 3,
        current_limit: { requests_per_unit: 5, unit: 2 },
        duration_until_reset: { seconds: 59, nanos: 1 },
      },
    ],
    request_headers_to_add: [{ key: "x-left", value: "3" }],
    response_headers_to_add: [{ key: "x-limiter", value: "real" }],
  }));
  await using upstream = await backend();
  const descriptors = [
    {
      type: "requests" as const,
      entries: [
        { key: "user", value: "request.headers['x-user']" },
        { key: "n", value: "1 + 1" },
      ],
      cost: "3",
      limitOverride: "{'unit': 'minute', 'requestsPerUnit': 7}",
    },
    { type: "requests" as const, entries: [{ key: "fails", value: "request.headers['x-none']" }] },
  ];
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port, { descriptors })));
  const response = await ask(plane, "ann");
  assert.equal(statusOf(response), 200);
  assert.equal(response.body, "x-user: ann,x-left: 3");
  assert.deepEqual(
    ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-limiter"].map((name) =>
      valuesOf(response, name).join(),
    ),
    ["5", "3", "60", "real"],
  );
  assert.deepEqual(service.questions, [
    {
      domain: "shop",
      descriptors: [
        {
          entries: [
            { key: "user", value: "ann" },
            { key: "n", value: "2" },
          ],
          limit: { requests_per_unit: 7, unit: 2 },
          hits_addend: { value: 3 },
        },
      ],
    },
  ]);
});

test("over the limit: 429 with the body of the service or the gateway, and when to retry", async () => {
  let raw_body: Uint8Array | undefined = Buffer.from("slow down");
  await using service = await limiter(() => ({
    overall_code: OVER_LIMIT,
    statuses: [
      { code: OVER_LIMIT, current_limit: { requests_per_unit: 1, unit: 1 }, duration_until_reset: { seconds: 30 } },
    ],
    ...(raw_body !== undefined && { raw_body }),
  }));
  await using upstream = await backend();
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port)));
  const limited = await ask(plane, "ann");
  assert.deepEqual([statusOf(limited), limited.body], [429, "slow down"]);
  assert.deepEqual(
    ["x-ratelimit-remaining", "retry-after"].map((name) => valuesOf(limited, name).join()),
    ["0", "30"],
  );
  raw_body = undefined;
  const plain = await ask(plane, "ann");
  assert.deepEqual(
    [statusOf(plain), plain.body, valuesOf(plain, "retry-after").join()],
    [429, "rate limit exceeded", "30"],
  );
});

test("without a complete descriptor the service is not called", async () => {
  await using service = await limiter(() => ({ overall_code: OVER_LIMIT }));
  await using upstream = await backend();
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port)));
  assert.equal(statusOf(await ask(plane)), 200);
  assert.deepEqual(service.questions, []);
});

test("a body that is too long for a descriptor does not bypass the limit", async () => {
  await using service = await limiter(() => ({ overall_code: 1 }));
  await using upstream = await backend();
  const descriptors = [{ type: "requests" as const, entries: [{ key: "user", value: "string(request.body)" }] }];
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port, { descriptors })));
  for (const [length, status] of [
    [2, 200],
    [3_000_000, 413],
  ]) {
    const client = await RawPeer.connect(plane.port);
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\nme`);
    assert.equal(statusOf(await client.message()), status);
    client.socket.destroy();
  }
  assert.equal(service.questions.length, 1);
});

test("a service that cannot be reached: 500, or the request continues without a limit", async () => {
  const gone = await GrpcServer.start({});
  gone.stop();
  await using upstream = await backend();
  await using plane = await TestPlane.start(route(upstream.port, policy(gone.port)));
  const refused = await ask(plane, "ann");
  assert.deepEqual([statusOf(refused), refused.body], [500, "rate limit failed"]);
  await plane.configure(route(upstream.port, policy(gone.port, { failureMode: "failOpen" })));
  assert.equal(statusOf(await ask(plane, "ann")), 200);
});

test("a gRPC client over a limit, of a service or of the gateway, gets the same headers", async () => {
  const statuses = [{ code: OVER_LIMIT, current_limit: { requests_per_unit: 1, unit: 1 } }];
  await using service = await limiter(() => ({ overall_code: OVER_LIMIT, statuses }));
  await using upstream = await backend();
  await using plane = await TestPlane.start([]);
  const local = {
    localRateLimit: [{ maxTokens: 0, tokensPerFill: 0, fillInterval: ms(60_000), type: "requests" }],
  } as const;
  for (const policies of [policy(service.port), local]) {
    await plane.configure(route(upstream.port, policies));
    const client = await RawPeer.connect(plane.port);
    client.send("POST /a.B/C HTTP/1.1\r\nHost: a\r\nX-User: ann\r\nContent-Type: application/grpc\r\n\r\n");
    const response = await client.message();
    client.socket.destroy();
    assert.deepEqual([statusOf(response), response.body], [200, ""]);
    assert.deepEqual(
      ["grpc-status", "grpc-message", "x-ratelimit-remaining"].map((name) => valuesOf(response, name).join()),
      ["14", "rate%20limit%20exceeded", "0"],
    );
    assert.equal(valuesOf(response, "x-ratelimit-limit").length, 1);
    assert.deepEqual(valuesOf(response, "content-type"), ["application/grpc"]);
  }
});

test("alternatives: the first whose condition is true applies", async () => {
  await using service = await limiter(() => ({ overall_code: 1 }));
  await using upstream = await backend();
  const { remoteRateLimit } = policy(service.port);
  const entry = (domain: string) => ({ ...(remoteRateLimit as RemoteRateLimit), domain });
  const conditional = [
    { condition: "request.headers['x-user'] == 'ann'", ...entry("for-ann") },
    { condition: "'x-user' in request.headers", ...entry("for-others") },
  ];
  await using plane = await TestPlane.start(route(upstream.port, { remoteRateLimit: { conditional } }));
  for (const user of ["ann", "bob", undefined]) assert.equal(statusOf(await ask(plane, user)), 200);
  assert.deepEqual(
    service.questions.map(({ domain }) => domain),
    ["for-ann", "for-others"],
  );
});
