import assert from "node:assert/strict";
import { test } from "node:test";
import { fc, seedFrom } from "./property.ts";

test("the seed of property tests is fixed, given, or a new one", () => {
  assert.equal(seedFrom(undefined, Math.random), seedFrom("", Math.random));
  assert.equal(seedFrom("7", Math.random), 7);
  assert.equal(
    seedFrom("random", () => 0.5),
    2 ** 30,
  );
  assert.throws(() => seedFrom("seven", Math.random), /PROPERTY_SEED=seven: use random or a whole number/);
});

test("two samples of one run are the same, and so are those of two runs", () => {
  assert.deepEqual(fc.sample(fc.integer(), 20), fc.sample(fc.integer(), 20));
});
