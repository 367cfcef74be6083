import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamTable } from "./stream-table.ts";

test("ids say which frames can still arrive for a stream, for a server", () => {
  const table = new StreamTable("server");
  table.lastOfPeer = 5;
  const idle = [1, 2, 5, 7].map((id) => table.isIdle(id));
  assert.deepEqual(idle, [false, true, false, true], "a server opens no streams");
  table.close();
  assert.deepEqual([table.isLate(5), table.isLate(7), table.isIdle(7)], [false, true, false]);
  assert.deepEqual([table.ignores(3), table.ignores(7)], [false, true]);
});

test("ids say which frames can still arrive for a stream, for a client", () => {
  const table = new StreamTable("client");
  assert.deepEqual([table.nextId(), table.nextId()], [1, 3]);
  const idle = [1, 3, 5, 2].map((id) => table.isIdle(id));
  assert.deepEqual(idle, [false, false, true, true]);
});

test("streams that were reset are remembered, the last thousand", () => {
  const table = new StreamTable("server");
  for (let id = 1; id <= 2001; id += 2) table.remember(id);
  assert.deepEqual([table.ignores(1), table.ignores(3), table.ignores(2001)], [false, true, true]);
});
