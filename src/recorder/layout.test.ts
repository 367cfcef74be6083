import assert from "node:assert/strict";
import { test } from "node:test";
import { type Field, fieldsIn, LAYOUT, SLOT, TEXTS } from "./layout.ts";

test("every field has its own aligned place in front of the texts", () => {
  const owner = new Map<number, string>();
  for (const [name, { offset, bytes }] of Object.entries(LAYOUT)) {
    assert.equal(offset % bytes, 0, `${name} is aligned`);
    for (let byte = offset; byte < offset + bytes; byte++) {
      assert.equal(owner.get(byte), undefined, `${name} has its own bytes`);
      owner.set(byte, name);
    }
  }
  assert.ok(Math.max(...owner.keys()) < TEXTS);
  assert.ok(SLOT - TEXTS >= 100, "there is room for an id and a path");
});

test("a field is read as it was written, in its slot only", () => {
  const fields = fieldsIn(new ArrayBuffer(3 * SLOT));
  const names = Object.keys(LAYOUT) as Field[];
  fields.at = SLOT;
  for (const [index, name] of names.entries()) fields[name] = index + 1;
  for (const [index, name] of names.entries()) assert.equal(fields[name], index + 1, name);
  for (const slot of [0, 2]) {
    fields.at = slot * SLOT;
    for (const name of names) assert.equal(fields[name], 0, name);
  }
});
