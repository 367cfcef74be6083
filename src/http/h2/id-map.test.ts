import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { IdMap } from "./id-map.ts";

interface Value {
  readonly id: number;
}

/** Ids of both sides of a connection, some of which fall into the same slot. */
const ID = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(2 ** 31 - 1, 2 ** 31 - 17, 65, 129));
const STEPS = fc.array(fc.record({ id: ID, adds: fc.boolean() }), { maxLength: 200 });

test("an IdMap holds what a Map would hold", () => {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const map = new IdMap<Value>();
      const model = new Map<number, Value>();
      for (const { id, adds } of steps) {
        const value = { id };
        if (adds) {
          map.set(value);
          model.set(id, value);
        } else assert.equal(map.delete(id), model.delete(id));
        assert.equal(map.get(id), model.get(id));
        assert.equal(map.size, model.size);
      }
      const expected = [...model.values()].sort((a, b) => a.id - b.id);
      assert.deepEqual(map.values(), expected);
      for (const { id } of steps) assert.equal(map.get(id), model.get(id));
    }),
  );
});

test("an IdMap that was cleared is empty, and can be used again", () => {
  const map = new IdMap<Value>();
  for (let id = 1; id < 100; id += 2) map.set({ id });
  map.clear();
  assert.deepEqual([map.size, map.get(3), map.delete(3), map.values()], [0, undefined, false, []]);
  map.set({ id: 3 });
  assert.deepEqual(map.values(), [{ id: 3 }]);
});
