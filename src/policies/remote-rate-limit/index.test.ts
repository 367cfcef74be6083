import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  OVER_LIMIT,
  RateLimitRequest,
  RateLimitResponse,
  SHOULD_RATE_LIMIT,
} from "../../../test/helpers/envoy/rate-limit.ts";
import { GrpcServer } from "../../../test/helpers/grpc-server.ts";
import { ms } from "../../base/durations.ts";
import type { LocalReply } from "../../http/message/message.ts";
import { redactPolicy } from "../registry.ts";
import { TestCallouts } from "../testing/callouts.ts";
import { answerOf, contextOf, creatorOf, DEPS, loggedText, RecordedTrace, rejectionOf } from "../testing/context.ts";
import { remoteRateLimit } from "./index.ts";
import type { RemoteRateLimit } from "./schema.ts";

const create = creatorOf(remoteRateLimit);

type Answer = Parameters<typeof RateLimitResponse.encode>[0];

const calls = new TestCallouts();
after(() => calls[Symbol.dispose]());

async function limiter(answer: Answer | (() => Promise<Uint8Array>)) {
  const questions: ReturnType<typeof RateLimitRequest.decode>[] = [];
  const metadata: Record<string, unknown>[] = [];
  const server = await GrpcServer.start({
    [SHOULD_RATE_LIMIT]: {
      unary(message, received) {
        questions.push(RateLimitRequest.decode(message));
        metadata.push(received.getMap());
        return typeof answer === "function" ? answer() : RateLimitResponse.encode(answer);
      },
    },
  });
  return Object.assign(server, { questions, metadata });
}

const USER = { type: "requests" as const, entries: [{ key: "user", value: "request.headers['x-user']" }] };

function policy(port: number, more: Partial<RemoteRateLimit> = {}) {
  const config: RemoteRateLimit = {
    target: { type: "static", host: "127.0.0.1", port },
    domain: "shop",
    descriptors: [USER],
    failureMode: "failClosed",
    timeout: ms(5000),
    ...more,
  };
  return create(config, calls.deps);
}

const ann = (headers: string[] = [], trace?: RecordedTrace) =>
  contextOf({ headers: ["x-user", "ann", ...headers] }, { trace });

async function run(
  port: number,
  more: Partial<RemoteRateLimit> = {},
  context = ann(),
): Promise<LocalReply | undefined> {
  return answerOf(policy(port, more), context);
}

const status = (code: number, limit: number, left: number, seconds: number, nanos = 0) => ({
  code,
  current_limit: { requests_per_unit: limit, unit: 1 },
  limit_remaining: left,
  duration_until_reset: { seconds, nanos },
});

test("descriptors are sent in order, with their own costs and limits", async () => {
  await using service = await limiter({ overall_code: 1 });
  const descriptors = [
    {
      type: "requests" as const,
      entries: [...USER.entries, { key: "path", value: "request.path" }, { key: "size", value: "size(request.body)" }],
    },
    { ...USER, cost: "1 + 1", limitOverride: "{'unit': 'HOUR', 'requestsPerUnit': 5}" },
    { ...USER, cost: "0" },
  ];
  const context = contextOf({ headers: ["x-user", "ann"] }, { body: "four" });
  assert.equal(await run(service.port, { descriptors }, context), undefined);
  const user = { key: "user", value: "ann" };
  assert.deepEqual(service.questions, [
    {
      domain: "shop",
      descriptors: [
        {
          entries: [user, { key: "path", value: "/shop/cart" }, { key: "size", value: "4" }],
        },
        {
          entries: [user],
          hits_addend: { value: 2 },
          limit: { requests_per_unit: 5, unit: 3 },
        },
        // 0, the default of the value, has no bytes.
        { entries: [user], hits_addend: {} },
      ],
    },
  ]);
});

test("descriptors that read absent values are omitted; other failed ones count as failures of the service", async () => {
  await using service = await limiter({ overall_code: OVER_LIMIT });
  const trace = new RecordedTrace();
  const absent = [
    { type: "requests" as const, entries: [{ key: "a", value: "request.headers['x-none']" }] },
    { type: "requests" as const, entries: [{ key: "a", value: "null" }] },
  ];
  const wrong = [
    { type: "requests" as const, entries: [{ key: "a", value: "[request.path]" }] },
    { ...USER, cost: "-1" },
    { ...USER, cost: "1.5" },
    { ...USER, cost: "'many'" },
    { ...USER, limitOverride: "{'unit': 'fortnight', 'requestsPerUnit': 5}" },
    { ...USER, limitOverride: "{'unit': 'day', 'requestsPerUnit': -5}" },
  ];
  assert.equal(await run(service.port, { descriptors: absent }, ann([], trace)), undefined);
  assert.equal(service.questions.length, 0);
  assert.equal(trace.events.length, absent.length + 1);
  assert.deepEqual(trace.events.at(-1), {
    kind: "remoteRateLimit",
    reason: "no descriptor could be made, so the request is not limited",
    severity: "warn",
  });
  for (const descriptor of wrong) {
    const { code } = await rejectionOf(run(service.port, { descriptors: [descriptor] }));
    assert.equal(code, "TG_RATE_LIMIT_SERVICE");
    assert.equal(await run(service.port, { descriptors: [descriptor], failureMode: "failOpen" }), undefined);
  }
  assert.equal(service.questions.length, 0);
  await rejectionOf(run(service.port, { descriptors: [...absent, USER] }));
  assert.equal(service.questions[0]?.descriptors?.length, 1);
});

test("within the limits: headers for the backend and for the client, those of the tightest limit among them", async () => {
  await using service = await limiter({
    overall_code: 1,
    statuses: [status(1, 100, 50, 60), status(1, 10, 2, 30, 1), { code: 1 }],
    request_headers_to_add: [{ key: "X-User", value: "checked" }],
    response_headers_to_add: [{ key: "x-plan", value: "gold" }],
  });
  const context = ann();
  assert.equal(await run(service.port, {}, context), undefined);
  assert.deepEqual(context.request.headers, ["x-user", "checked"]);
  assert.deepEqual(context.responseHeaders(), [
    ...["x-ratelimit-limit", "10", "x-ratelimit-remaining", "2", "x-ratelimit-reset", "31"],
    ...["x-plan", "gold"],
  ]);
});

test("over the limit: the service's body with its headers, else the gateway's response, with Retry-After", async () => {
  const statuses = [status(OVER_LIMIT, 1, 0, 30), status(1, 5, 3, 90), status(OVER_LIMIT, 2, 0, 59, 1)];
  const raw_body = Buffer.from("slow down");
  await using speaking = await limiter({ overall_code: OVER_LIMIT, statuses, raw_body });
  const reply = await run(speaking.port);
  assert.deepEqual(
    [reply?.status, Buffer.from(reply?.body ?? "").toString(), reply?.reason],
    [429, "slow down", "RateLimit"],
  );
  const limits = ["x-ratelimit-limit", "1", "x-ratelimit-remaining", "0", "x-ratelimit-reset", "30"];
  assert.deepEqual(reply?.headers, [...limits, "retry-after", "60"]);

  const response_headers_to_add = [{ key: "retry-after", value: "7" }];
  await using mute = await limiter({ overall_code: OVER_LIMIT, statuses, response_headers_to_add });
  const error = await rejectionOf(run(mute.port));
  assert.deepEqual(
    [error.code, error.status, error.headers],
    ["TG_RATE_LIMITED", 429, [...limits, "retry-after", "7"]],
  );
});

test("a gRPC client gets the service's text as a status", async () => {
  await using service = await limiter({
    overall_code: OVER_LIMIT,
    statuses: [status(OVER_LIMIT, 1, 0, 30)],
    raw_body: Buffer.from("slow down"),
  });
  const reply = await run(service.port, {}, ann(["content-type", "application/grpc"]));
  assert.deepEqual([reply?.status, reply?.body], [200, ""]);
  assert.deepEqual(reply?.headers.slice(0, 6), [
    ...["content-type", "application/grpc", "grpc-status", "14"],
    ...["grpc-message", "slow%20down"],
  ]);
  assert.ok(reply?.headers.includes("x-ratelimit-limit"));
});

test("a service that fails, is late or breaks the protocol: 500, or no limit", async () => {
  await using failing = await limiter(() => Promise.reject(new Error("no memory")));
  await using late = await limiter(() => new Promise(() => {}));
  await using odd = await limiter(() => Promise.resolve(Buffer.from([0xff])));
  for (const [{ port }, timeout, why] of [
    [failing, 5000, /no memory/],
    [late, 30, /./],
    [odd, 5000, /./],
  ] as const) {
    const error = await rejectionOf(run(port, { timeout: ms(timeout) }));
    assert.deepEqual([error.code, error.status], ["TG_RATE_LIMIT_SERVICE", 500]);
    assert.match(loggedText(error), why);
    const trace = new RecordedTrace();
    assert.equal(await run(port, { timeout: ms(timeout), failureMode: "failOpen" }, ann([], trace)), undefined);
    assert.match(JSON.stringify(trace.events.at(-1)), /"result":"failed"/);
  }
});

test("the call carries the service's credentials; without them it counts as failed; they are never shown", async () => {
  await using service = await limiter({ overall_code: 1 });
  const location = { header: { name: "authorization", prefix: "Bearer " } };
  const key = { backendAuth: { key: { value: "very secret", location }, credentials: [] } };
  const trace = new RecordedTrace();
  assert.equal(await run(service.port, { policies: key }, ann([], trace)), undefined);
  assert.equal(service.metadata[0]?.authorization, "Bearer very secret");
  assert.deepEqual(trace.events.slice(0, 3), [
    { hide: "header", name: "authorization" },
    { kind: "backend_auth", details: { location: "header" }, scope: "rate_limit" },
    { scope: "rate_limit", target: `127.0.0.1:${service.port}` },
  ]);
  const unreadable = { jwtSign: { alg: "RS256", ttl: ms(1000), location }, credentials: [] } as const;
  const error = await rejectionOf(run(service.port, { policies: { backendAuth: unreadable } }));
  assert.equal(error.code, "TG_RATE_LIMIT_SERVICE");
  assert.match(loggedText(error), /the signing key could not be read/);
  assert.equal(service.questions.length, 1);
  const redacted = JSON.stringify(redactPolicy("remoteRateLimit", { policies: key }, DEPS.hidden));
  assert.ok(!redacted.includes("very secret") && redacted.includes("backendAuth"));
});
