import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestRecord } from "../src/recorder/records.ts";
import { keyOf } from "../src/report/recorded.ts";
import { EMPTY, following, MOST, newer, received } from "./request-list.ts";

function record(number: number, worker = 0): RequestRecord {
  const time = new Date(Date.UTC(2026, 0, 1) + number).toISOString();
  const request = { method: "GET", host: "shop.example", path: "/cart", status: 200, reason: "Upstream" } as const;
  return { time, worker, number, generation: 1, duration: 1, received: 0, sent: 0, ...request };
}

test("a list that follows shows each record once, the newest first", () => {
  const first = received(EMPTY, [record(3), record(1)]);
  const list = received(first, [record(4), record(3), record(2, 1)]);
  assert.deepEqual(list.shown.map(keyOf), ["0-4", "0-3", "1-2", "0-1"]);
  assert.equal(received(list, [record(4)]), list, "nothing new is no change");
});

test("a list that stands still says how many are newer, and shows them when it follows again", () => {
  const still = following(received(EMPTY, [record(1)]), false);
  const list = received(still, [record(3), record(2)]);
  assert.deepEqual(list.shown.map(keyOf), ["0-1"]);
  assert.equal(newer(list), 2);
  assert.deepEqual(following(list, true).shown.map(keyOf), ["0-3", "0-2", "0-1"]);
});

test("a list that stood still before it had any record shows the first that it receives", () => {
  const list = received({ ...EMPTY, follows: false }, [record(2), record(1)]);
  assert.deepEqual(list.shown.map(keyOf), ["0-2", "0-1"]);
  assert.equal(newer(received(list, [record(3)])), 1);
});

test("the list is bounded: the oldest leave it, and all are newer than what stands still", () => {
  const still = following(received(EMPTY, [record(0)]), false);
  const more = Array.from({ length: MOST + 5 }, (_, i) => record(i + 1));
  const list = received(still, more);
  assert.equal(list.known.length, MOST);
  assert.equal(list.known[0]?.number, MOST + 5);
  assert.equal(newer(list), MOST);
});
