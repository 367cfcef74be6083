import assert from "node:assert/strict";
import { test } from "node:test";
import { KeptSlots, RouteHistory } from "./kept.ts";

test("of one route and reason, 20 records a second are kept", () => {
  const route = new RouteHistory();
  const denied = route.class(1);
  const admitted = (now: number) => Array.from({ length: 50 }, () => denied.admits(now)).filter(Boolean).length;
  assert.equal(admitted(0), 20);
  assert.equal(admitted(999), 0);
  assert.equal(route.class(2).admits(999), true);
  assert.equal(admitted(1000), 20);
});

test("a flood of one route takes the room that others leave, and gives it up when they need it", () => {
  const kept = new KeptSlots(10, new Set());
  const flood = new RouteHistory();
  const quiet = new RouteHistory();
  for (let i = 0; i < 100; i++) kept.claim(flood.class(1));
  assert.equal(flood.kept, 10);
  const own = [1, 2, 3].map(() => kept.claim(quiet.class(1)));
  for (let i = 0; i < 100; i++) assert.ok(!own.includes(kept.claim(flood.class(1))), "only its own slots are reused");
  assert.deepEqual([flood.kept, quiet.kept], [7, 3]);
  for (let i = 0; i < 100; i++) kept.claim(quiet.class(1));
  assert.equal(flood.kept + quiet.kept, 10);
  assert.ok(Math.abs(flood.kept - quiet.kept) <= 2);
});

test("within a route, the reason with the most records gives up its oldest", () => {
  const kept = new KeptSlots(4, new Set());
  const route = new RouteHistory();
  const rare = kept.claim(route.class(2));
  const common = [1, 2, 3].map(() => kept.claim(route.class(1)));
  assert.deepEqual(
    [1, 2, 3, 4].map(() => kept.claim(route.class(1))),
    [...common, common[0]],
  );
  assert.equal(route.class(2).newest, rare);
});

test("slots that hold records already are used when all others are taken", () => {
  const kept = new KeptSlots(3, new Set([1]));
  const route = new RouteHistory();
  kept.add(route.class(1), 1);
  const claimed = [1, 2, 3].map(() => kept.claim(route.class(1)));
  assert.deepEqual(claimed, [0, 2, 1]);
});

test("a request is slow if it takes four times as long as those of its route usually do", () => {
  const route = new RouteHistory();
  assert.equal(route.isSlow(5000), false, "nothing is usual yet");
  for (let i = 0; i < 200; i++) route.isSlow(10);
  assert.equal(route.isSlow(39), false);
  assert.equal(route.isSlow(60), true);
  const fast = new RouteHistory();
  for (let i = 0; i < 200; i++) fast.isSlow(0.2);
  assert.equal(fast.isSlow(4), false, "the machine may have been busy");
});
