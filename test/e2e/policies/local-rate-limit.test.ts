import assert from "node:assert/strict";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";

/** An hour: no bucket is refilled while a test runs. */
const LIMIT = { maxTokens: 30, tokensPerFill: 1, fillInterval: "1h" };

function config(status: number, limit: object = LIMIT): object {
  const routes = [{ name: "r", policies: { localRateLimit: [limit], directResponse: { status } } }];
  return { config: { workerThreads: 2 }, binds: [{ port: 0, listeners: [{ routes }] }] };
}

async function ask(gateway: TestGateway, headers: Record<string, string> = {}): Promise<Response> {
  // A connection for each request, so that they reach both threads.
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/`, { headers: { connection: "close", ...headers } });
  await response.arrayBuffer();
  return response;
}

async function admitted(gateway: TestGateway, count: number, status: number): Promise<number> {
  const statuses = await Promise.all(Array.from({ length: count }, async () => (await ask(gateway)).status));
  assert.ok(statuses.every((each) => each === status || each === 429));
  return statuses.filter((each) => each === status).length;
}

test("all threads together admit as many requests as the bucket holds; a reload does not refill it", async () => {
  await using gateway = await TestGateway.start(config(201));
  assert.equal(await admitted(gateway, 20, 201), 20);
  assert.equal(await gateway.reconfigure(config(202)), "applied");
  assert.equal(await admitted(gateway, 20, 202), 10);

  const refused = await ask(gateway);
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get("x-ratelimit-limit"), "30");
  assert.equal(refused.headers.get("x-ratelimit-remaining"), "0");
  assert.ok(Number(refused.headers.get("retry-after")) > 3000);
  await gateway.until(() => gateway.lines.some((line) => line.reason === "RateLimit"), "the reason in the log");
});

test("each key has its own bucket", async () => {
  await using gateway = await TestGateway.start(
    config(204, { ...LIMIT, maxTokens: 1, key: 'request.headers["x-user"]' }),
  );
  for (const [user, status] of [
    ["a", 204],
    ["a", 429],
    ["b", 204],
    ["b", 429],
  ] as const)
    assert.equal((await ask(gateway, { "x-user": user })).status, status);
});
