import assert from "node:assert/strict";
import { test } from "node:test";
import { LogWindow } from "./log-window.ts";

const LINE = Buffer.from(`${"x".repeat(64 * 1024 - 1)}\n`);

test("lines for which the main thread leaves no room are dropped and counted once; afterwards there is room again", () => {
  const main = new LogWindow();
  const worker = new LogWindow(main.memory);
  let sent = 0;
  while (sent < 1000 && worker.admit(LINE)) sent++;
  assert.equal(sent, 64);
  assert.equal(worker.admit(Buffer.from("a\nb\n")), false);
  assert.equal(main.arrived(LINE), 3);
  assert.equal(main.arrived(LINE), 0);
  assert.equal(worker.admit(LINE), true);
});

test("one piece is always let through, however long it is", () => {
  const window = new LogWindow();
  assert.equal(window.admit(Buffer.alloc(8 * 1024 * 1024)), true);
});
