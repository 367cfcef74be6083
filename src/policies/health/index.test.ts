import assert from "node:assert/strict";
import { test } from "node:test";
import { DEPS } from "../testing/context.ts";
import { health } from "./index.ts";
import { schema } from "./schema.ts";

const create = (config: Parameters<typeof health.create>[0]) => health.create(config, DEPS);

test("an expression over the body of the response is refused: nobody keeps that", () => {
  assert.throws(
    () => create({ unhealthyExpression: 'string(response.body).contains("error")' }),
    /head of a response: leave out response\.body/,
  );
  create({ unhealthyExpression: "response.code == 500" });
});

test("shares are from 0 to 1, counts from 1, durations have a unit", () => {
  const refused = (eviction: object) => assert.equal(schema.safeParse({ eviction }).success, false);
  refused({ restoreHealth: 1.5 });
  refused({ healthThreshold: -0.1 });
  refused({ consecutiveFailures: 0 });
  refused({ duration: "ten" });
  assert.deepEqual(schema.parse({ eviction: { duration: "10s", restoreHealth: 0.5 } }), {
    eviction: { duration: 10_000, restoreHealth: 0.5 },
  });
});
