import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import type { Health } from "../../upstream/settings/settings.ts";
import { UPSTREAM_SETTINGS } from "../upstream-settings/index.ts";
import { health as schema } from "./upstream-settings.ts";

const check = (config: Health) => UPSTREAM_SETTINGS.health.check(config, STANDARD_ENVIRONMENT);

test("an expression over the response body is rejected: it is not buffered", () => {
  assert.throws(
    () => check({ unhealthyExpression: 'string(response.body).contains("error")' }),
    /head of a response: remove response\.body/,
  );
  check({ unhealthyExpression: "response.code == 500" });
});

test("shares are from 0 to 1, counts from 1, durations have a unit", () => {
  const rejected = (eviction: object) => assert.equal(schema.safeParse({ eviction }).success, false);
  rejected({ restoreHealth: 1.5 });
  rejected({ healthThreshold: -0.1 });
  rejected({ consecutiveFailures: 0 });
  rejected({ duration: "ten" });
  assert.deepEqual(schema.parse({ eviction: { duration: "10s", restoreHealth: 0.5 } }), {
    eviction: { duration: 10_000, restoreHealth: 0.5 },
  });
});
