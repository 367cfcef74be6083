import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../../test/helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../../test/helpers/raw-peer.ts";
import { ms } from "../../base/durations.ts";
import { GatewayError } from "../../base/errors.ts";
import type { CompiledPolicy } from "../compile.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace } from "../testing/context.ts";
import { createBuckets, TokenBuckets } from "../token-buckets/buckets.ts";
import { localRateLimit } from "./index.ts";
import type { LocalLimit } from "./schema.ts";

const create = creatorOf(localRateLimit);

/** Milliseconds since boot. The sum with a minute has fewer digits, and is rounded up. */
const NOW = 123456.000102;
const LIMIT: LocalLimit = { maxTokens: 2, tokensPerFill: 1, fillInterval: ms(60_000), type: "requests" };

function policyOf(...limits: Partial<LocalLimit>[]): CompiledPolicy {
  return create(
    limits.map((limit) => ({ ...LIMIT, ...limit })),
    { ...DEPS, buckets: new TokenBuckets(createBuckets(), 0, undefined, () => NOW) },
  );
}

/** Fields of the response to one request, by name. */
function ask(policy: CompiledPolicy, headers: string[] = []): { status: number; headers: Record<string, string> } {
  const context = contextOf({ headers });
  try {
    assert.equal(policy.onRequest?.(context), undefined);
    return { status: 200, headers: named(context.responseHeaders()) };
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    assert.equal(error.message, "rate limit exceeded");
    return { status: error.status, headers: named(error.headers) };
  }
}

function named(list: readonly string[]): Record<string, string> {
  return Object.fromEntries(list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1] ?? ""]] : [])));
}

test("admits what the bucket holds, then 429; both report the state of the limit", () => {
  const policy = policyOf({});
  const fields = { "x-ratelimit-limit": "2", "x-ratelimit-reset": "60" };
  assert.deepEqual(ask(policy), { status: 200, headers: { ...fields, "x-ratelimit-remaining": "1" } });
  assert.deepEqual(ask(policy), { status: 200, headers: { ...fields, "x-ratelimit-remaining": "0" } });
  const rejected = { ...fields, "x-ratelimit-remaining": "0", "retry-after": "60" };
  assert.deepEqual(ask(policy), { status: 429, headers: rejected });
});

test("a bucket that is never refilled has no Retry-After", () => {
  assert.equal(ask(policyOf({ maxTokens: 0, tokensPerFill: 0 })).headers["retry-after"], undefined);
});

test("several limits: each takes a token, the most constrained one is reported", () => {
  const policy = policyOf({ maxTokens: 9 }, { maxTokens: 2, fillInterval: ms(1000) }, { maxTokens: 5 });
  assert.deepEqual(ask(policy).headers, {
    "x-ratelimit-limit": "2",
    "x-ratelimit-remaining": "1",
    "x-ratelimit-reset": "1",
  });
  ask(policy);
  assert.equal(ask(policy).status, 429);
});

test("a key has a bucket for each of its values; requests for which it fails share one", () => {
  const policy = policyOf({ maxTokens: 1, key: 'request.headers["x-user"]' });
  assert.equal(ask(policy, ["x-user", "a"]).status, 200);
  assert.equal(ask(policy, ["x-user", "a"]).status, 429);
  assert.equal(ask(policy, ["x-user", "b"]).status, 200);
  assert.equal(ask(policy).status, 200);
  assert.equal(ask(policy).status, 429);
});

test("the same place in another configuration finds its bucket again; another place does not", () => {
  const buckets = new TokenBuckets();
  const at = (shared: string) => create([LIMIT], { ...DEPS, buckets, shared });
  ask(at("route a"));
  ask(at("route a"));
  assert.equal(ask(at("route a")).status, 429);
  assert.equal(ask(at("route b")).status, 200);
});

test("limits that cannot work are rejected at load", () => {
  assert.throws(
    () => policyOf({}, { maxTokens: 1, tokensPerFill: 2 }),
    /localRateLimit.1.maxTokens: max tokens cannot be less than the refill amount/,
  );
  assert.throws(() => policyOf({ fillInterval: ms(0) }), /localRateLimit.0.fillInterval: at least 1ms/);
  assert.throws(() => policyOf({ type: "tokens" }), /localRateLimit.0.type: tokens of language models/);
  assert.throws(() => policyOf({ key: "nope" }), /unknown variable nope/);
});

test("reports what it decided", () => {
  const trace = new RecordedTrace();
  const policy = policyOf({ maxTokens: 1 });
  policy.onRequest?.(contextOf({}, { trace }));
  assert.throws(() => policy.onRequest?.(contextOf({}, { trace })));
  assert.deepEqual(trace.events, [
    { kind: "localRateLimit", details: { allowed: true, limit: 1, remaining: 0 } },
    { kind: "localRateLimit", details: { allowed: false, limit: 1 }, severity: "error" },
  ]);
});

test("random keys on one route do not admit more logins on another", async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  const limit: LocalLimit = { ...LIMIT, maxTokens: 5, tokensPerFill: 5 };
  const buckets = createBuckets({
    common: 1,
    sizes: [
      { shares: 2, sets: 1 },
      { shares: 0, sets: 0 },
    ],
  });
  const routes = [
    { path: "/login", target, policies: { localRateLimit: [{ ...limit, key: 'request.headers["x-user"]' }] } },
    { path: "/api", target, policies: { localRateLimit: [{ ...limit, key: 'request.headers["x-key"]' }] } },
  ];
  await using plane = await TestPlane.start(routes, { buckets });
  const client = await RawPeer.connect(plane.port);
  const send = async (path: string, fields: string): Promise<number> => {
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n`);
    return statusOf(await client.message());
  };
  const login = () => send("/login", "x-user: zoe");
  for (let i = 0; i < 5; i++) assert.equal(await login(), 200);
  assert.equal(await login(), 429);
  const statuses: number[] = [];
  for (let i = 0; i < 200; i++) statuses.push(await send("/api", `x-key: ${i}`));
  // 64 keys have found room, and the others got the tokens of one bucket.
  assert.equal(statuses.filter((status) => status === 200).length, 64 + 5);
  assert.equal(await login(), 429);
  await plane.configure(routes);
  assert.equal(await login(), 429);
  const counted = plane.metrics.snapshot().local_rate_limit_overflow_total?.map(({ value }) => value);
  assert.deepEqual(counted, [136]);
  client.socket.destroy();
});
