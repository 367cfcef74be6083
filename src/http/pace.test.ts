import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { BodyRate, Turns } from "./pace.ts";

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

test("bytes sent earlier make up for at most 30 s of silence", (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const rate = new BodyRate();
  rate.start();
  rate.received = 2_000_000;
  const silentFor = (): number => {
    const begin = now;
    while (!rate.tooSlow(now, 240)) now += 1000;
    return now - begin;
  };
  assert.equal(silentFor(), 31_000);
  rate.reset();
  rate.start();
  assert.equal(silentFor(), 11_000);
  rate.reset();
  rate.start();
  for (let i = 0; i < 300; i++) {
    now += 1000;
    rate.received += 240;
    assert.equal(rate.tooSlow(now, 240), false);
  }
  rate.pause();
  now += 100_000;
  rate.resume();
  assert.equal(rate.tooSlow(now, 240), false);
});
