import assert from "node:assert/strict";
import { test } from "node:test";
import { Evictions } from "./endpoint.ts";

const notice = (key: string, ms: number) => ({ key, ms, timesEjected: 1, restoreHealth: undefined });

test("a worker that starts later hears of what is still evicted, and for how long", () => {
  const evictions = new Evictions();
  evictions.add(notice("a", 1000), 0);
  evictions.add(notice("b", 3000), 500);
  assert.deepEqual(evictions.inForce(900), [notice("a", 100), notice("b", 2600)]);
  assert.deepEqual(evictions.inForce(1000), [notice("b", 2500)]);
  evictions.add({ ...notice("b", 6000), timesEjected: 2 }, 3600);
  assert.deepEqual(evictions.inForce(3600), [{ ...notice("b", 6000), timesEjected: 2 }]);
});

test("an endpoint that comes later takes its own", () => {
  const evictions = new Evictions();
  evictions.add(notice("a", 1000), 0);
  evictions.add(notice("b", 1000), 0);
  assert.equal(evictions.take("c", 400), undefined);
  assert.deepEqual(evictions.take("a", 400), notice("a", 600));
  assert.equal(evictions.take("a", 400), undefined);
  assert.equal(evictions.take("b", 1000), undefined);
});
