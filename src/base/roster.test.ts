import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/helpers/property.ts";
import { Roster, type Rostered } from "./roster.ts";

interface Item extends Rostered {
  readonly name: number;
}

const NAMES = 6;
const makeItems = (): Item[] => Array.from({ length: NAMES }, (_, name) => ({ name, place: -1 }));
const anyName = fc.nat(NAMES - 1);

test("a roster has the items and notes that a Map would have", () => {
  const steps = fc.array(fc.tuple(fc.constantFrom("set", "delete"), anyName, fc.nat(9)), { maxLength: 40 });
  fc.assert(
    fc.property(steps, (list) => {
      const items = makeItems();
      const roster = new Roster<Item, number>();
      const model = new Map<number, number>();
      for (const [action, name, note] of list) {
        const item = items[name] as Item;
        if (action === "set") {
          roster.set(item, note);
          model.set(name, note);
        } else {
          roster.delete(item);
          model.delete(name);
        }
        assert.equal(roster.size, model.size);
        for (const each of items) {
          assert.equal(roster.has(each), model.has(each.name));
          assert.equal(roster.note(each), model.get(each.name));
        }
      }
      const seen = new Map<number, number>();
      roster.each((item, note) => seen.set(item.name, note));
      assert.deepEqual(new Map([...seen].sort()), new Map([...model].sort()));
      assert.deepEqual(new Set(roster.items().map(({ name }) => name)), new Set(model.keys()));
    }),
  );
});

test("every item that stays is visited, whatever the visits delete and add", () => {
  // What the visit of each item deletes, and whether it adds one.
  const plan = fc.array(fc.tuple(fc.array(anyName), fc.boolean()), { minLength: NAMES, maxLength: NAMES });
  fc.assert(
    fc.property(plan, (visits) => {
      const roster = new Roster<Item>();
      const items = makeItems();
      for (const item of items) roster.set(item, undefined);
      const seen = new Set<Item>();
      let visited = 0;
      roster.each((item) => {
        seen.add(item);
        visited++;
        const [deleted, adds] = visits[item.name] ?? [[], false];
        for (const name of deleted) roster.delete(items[name] as Item);
        if (adds) roster.set({ name: NAMES, place: -1 }, undefined);
      });
      assert.ok(visited <= NAMES, "the visits come to an end");
      for (const item of items) if (roster.has(item)) assert.ok(seen.has(item), `item ${item.name} was left out`);
    }),
  );
});

test("an item of another roster is not here", () => {
  const [mine, other] = [new Roster<Rostered>(), new Roster<Rostered>()];
  const [one, two] = [{ place: -1 }, { place: -1 }];
  mine.set(one, undefined);
  other.set(two, undefined);
  mine.delete(two);
  assert.equal(mine.size, 1);
  assert.equal(mine.has(two), false);
  assert.equal(other.has(two), true);
});
