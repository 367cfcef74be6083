import assert from "node:assert/strict";
import { test } from "node:test";
import { onceEach } from "./npm-script.ts";

test("a signal that npm passes on counts once, another one again", (t) => {
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  const handled: string[] = [];
  const onSignal = onceEach((signal: string) => handled.push(signal));
  onSignal("SIGINT");
  now += 5;
  onSignal("SIGINT");
  onSignal("SIGTERM");
  now += 2000;
  onSignal("SIGINT");
  assert.deepEqual(handled, ["SIGINT", "SIGTERM", "SIGINT"]);
});
