import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Turns } from "./pace.ts";

/** How many requests begin until a turn is used up, when each takes so many milliseconds. */
function begunInTurn(turns: Turns, take: () => void): number {
  let begun = 0;
  while (turns.begin()) {
    begun++;
    take();
  }
  return begun;
}

test("a turn ends after its number of requests, or earlier when they take long", async (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const immediates = new EventTarget();
  const taker = { onTurn: () => immediates.dispatchEvent(new Event("turn")), onFault: assert.ifError };
  const turns = new Turns(taker, 64);
  for (const [milliseconds, expected] of [
    [0, 64],
    [0.05, 32],
    [20, 16],
  ] as const) {
    const next = once(immediates, "turn");
    const begun = begunInTurn(turns, () => {
      now += milliseconds;
    });
    assert.equal(begun, expected, `${milliseconds} ms each`);
    await next;
  }
});
