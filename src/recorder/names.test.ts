import assert from "node:assert/strict";
import { test } from "node:test";
import { SLOT } from "./layout.ts";
import { RecorderMemory } from "./memory.ts";
import { LastName, Name, NameReader, Names } from "./names.ts";

function memory(): RecorderMemory {
  return RecorderMemory.create(SLOT, SLOT);
}

/** Adds names of 1,000 bytes until a new epoch has begun. */
function turn(names: Names, mark: string): void {
  const { epoch } = names;
  for (let i = 0; names.epoch === epoch; i++) {
    names.makeRoom();
    names.find(`${mark}${i}`.padEnd(1000, "."), new LastName());
  }
}

test("a reader finds the text of a number, also after the worker has been replaced", () => {
  const shared = memory();
  const reader = new NameReader(shared);
  const first = new Names(shared);
  const route = first.find("default/shöp", new LastName());
  const host = first.findOfClient("shop.example", new LastName());
  const second = new Names(shared);
  assert.equal(second.epoch, first.epoch);
  assert.equal(second.find("default/shöp", new LastName()), route);
  assert.equal(second.findOfClient("shop.example", new LastName()), host);
  const added = second.find("default/other", new LastName());
  const texts = [route, host, added, 0].map((number) => reader.text(second.epoch, number));
  assert.deepEqual(texts, ["default/shöp", "shop.example", "default/other", undefined]);
});

test("names outlive one turn of the memory; after the second they are unknown instead of wrong", () => {
  const shared = memory();
  const names = new Names(shared);
  const reader = new NameReader(shared);
  const route = new Name("default/shop");
  const [epoch, number] = [names.epoch, names.of(route)];
  turn(names, "a");
  assert.equal(reader.text(epoch, number), "default/shop");
  assert.equal(reader.text(names.epoch, names.of(route)), "default/shop");
  turn(names, "b");
  assert.equal(new NameReader(shared).text(epoch, number), undefined);
  assert.equal(reader.text(names.epoch, names.of(route)), "default/shop");
});

test("clients cannot fill the memory with names of their choice", () => {
  const names = new Names(memory());
  const { epoch } = names;
  let last = 0;
  for (let i = 0; i < 100_000; i++) {
    names.makeRoom();
    last = names.findOfClient(`host${i}.example`, new LastName());
  }
  assert.equal(last, 0);
  assert.equal(names.epoch, epoch);
  assert.notEqual(names.findOfClient("host0.example", new LastName()), 0);
  assert.notEqual(names.find("default/shop", new LastName()), 0);
});

test("a name that is too long is cut", () => {
  const shared = memory();
  const names = new Names(shared);
  const number = names.find("n".repeat(5000), new LastName());
  assert.equal(new NameReader(shared).text(names.epoch, number), "n".repeat(1024));
  assert.equal(new Names(shared).find("after", new LastName()), names.find("after", new LastName()));
});
