import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import { RequestCounts } from "../request-counts/request-counts.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace, type TestContext } from "../testing/context.ts";
import { concurrencyLimit } from "./index.ts";
import type { ConcurrencyLimit } from "./schema.ts";

const create = creatorOf(concurrencyLimit);

/** Requests at one policy; each returns its context while it is in progress, or undefined if it gets 429. */
function requestsAt(config: ConcurrencyLimit, trace = new RecordedTrace()) {
  const policy = create(config, { ...DEPS, requestCounts: new RequestCounts() });
  return (...headers: string[]): TestContext | undefined => {
    const context = contextOf({ headers }, { trace });
    try {
      assert.equal(policy.onRequest?.(context), undefined);
      return context;
    } catch (error) {
      assert.ok(error instanceof GatewayError && error.status === 429);
      return undefined;
    }
  };
}

test("a key has a count for each of its values; requests for which it fails share one", () => {
  const begin = requestsAt([{ maxRequests: 1, key: 'request.headers["x-user"]' }]);
  const first = begin("x-user", "a");
  assert.ok(first);
  assert.equal(begin("x-user", "a"), undefined);
  assert.ok(begin("x-user", "b"));
  assert.ok(begin());
  assert.equal(begin(), undefined);
  first.end();
  assert.ok(begin("x-user", "a"));
  // Of long values, the beginning counts.
  const long = "l".repeat(1024);
  assert.ok(begin("x-user", `${long}1`));
  assert.equal(begin("x-user", `${long}2`), undefined);
});

test("a request that one limit rejects counts in none; the trace has the tightest limit of the others", () => {
  const trace = new RecordedTrace();
  const begin = requestsAt([{ maxRequests: 3 }, { maxRequests: 1, key: 'request.headers["x-user"]' }], trace);
  assert.ok(begin("x-user", "a"));
  for (let i = 0; i < 5; i++) assert.equal(begin("x-user", "a"), undefined);
  assert.ok(begin("x-user", "b"));
  assert.ok(begin("x-user", "c"));
  assert.equal(begin("x-user", "d"), undefined);
  const event = (details: object) => ({ kind: "concurrencyLimit", details, severity: "error" });
  assert.deepEqual(trace.events.slice(0, 2), [
    { kind: "concurrencyLimit", details: { allowed: true, limit: 1, count: 1 } },
    event({ allowed: false, limit: 1, count: 1 }),
  ]);
  assert.deepEqual(trace.events.at(-1), event({ allowed: false, limit: 3, count: 3 }));
});
