import assert from "node:assert/strict";
import { test } from "node:test";
import { HealthHistory } from "./health-history.ts";

test("the last changes of endpoints are kept, the latest first, and a state that continues is no change", () => {
  const history = new HealthHistory();
  history.add("a", { at: 1, state: "healthy" });
  history.add("a", { at: 2, state: "healthy" });
  history.add("a", { at: 3, state: "unhealthy", reason: "status 503" });
  history.add("a", { at: 4, state: "unhealthy", reason: "no connection in time" });
  history.add("b", { at: 5, state: "evicted", forMs: 3000 });
  history.add("b", { at: 6, state: "evicted", forMs: 6000 });
  assert.deepEqual(
    history.of(["a", "b", "unknown"]).map(({ at }) => at),
    [6, 5, 3, 1],
  );
  assert.deepEqual(history.of(["a"])[0], { at: 3, state: "unhealthy", reason: "status 503" });
});

test("an endpoint that changes all the time, many endpoints and long reasons take bounded memory", () => {
  const history = new HealthHistory();
  for (let at = 0; at < 100; at++) history.add("a", { at, state: "evicted", forMs: 1 });
  assert.deepEqual(
    history.of(["a"]).map(({ at }) => at),
    Array.from({ length: 16 }, (_, i) => 99 - i),
  );
  // With a clock that goes back, the changes that are kept are not the largest of all.
  for (let at = 99; at >= 0; at--) history.add("back", { at, state: "evicted", forMs: 1 });
  assert.deepEqual(
    history.of(["back"]).map(({ at }) => at),
    Array.from({ length: 16 }, (_, i) => 15 - i),
  );
  assert.equal(history.of(["a", "back"]).length, 16);
  for (let i = 0; i < 10_000; i++) history.add(`endpoint-${i}`, { at: i, state: "unhealthy", reason: "x".repeat(1e4) });
  assert.deepEqual(history.of(["a"]), []);
  assert.deepEqual(history.of(["endpoint-9999"]), [{ at: 9999, state: "unhealthy", reason: "x".repeat(200) }]);
});
