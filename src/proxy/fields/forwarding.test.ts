import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestIds } from "./forwarding.ts";

test("ids have the form of random UUIDs and never repeat, also beyond one random start", () => {
  const ids = new RequestIds();
  const count = 150_000;
  const made = new Set(Array.from({ length: count }, () => ids.next()));
  assert.equal(made.size, count);
  for (const id of made) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(new Set([...made].map((id) => id.slice(0, 32))).size, 3);
});

test("threads start with different ids", () => {
  assert.notEqual(new RequestIds().next(), new RequestIds().next());
});
