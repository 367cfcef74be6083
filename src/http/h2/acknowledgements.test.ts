import assert from "node:assert/strict";
import { test } from "node:test";
import { Acknowledgements } from "./acknowledgements.ts";

test("each SETTINGS frame has to be acknowledged within ten seconds", (t) => {
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  const acks = new Acknowledgements();
  now += 5000;
  acks.settingsSent();
  assert.deepEqual([acks.settingsOverdue(now + 9000), acks.settingsCame()], [false, true]);
  assert.equal(acks.settingsOverdue(now + 11_000), true, "the second frame is not acknowledged");
  assert.deepEqual([acks.settingsCame(), acks.settingsCame()], [true, false]);
  assert.equal(acks.settingsOverdue(now + 11_000), false);
  acks.settingsSent();
  assert.equal(acks.settingsOverdue(now + 11_000), true);
});
