import assert from "node:assert/strict";
import { test } from "node:test";
import { FollowLog, type Passage } from "./follow-log.ts";

const ALL = 1000;

/** The events of a passage, behind the number of those that are missing. */
const shown = ({ missing, events }: Passage): string =>
  [`${missing.events}/${missing.ended}`, ...events.map(({ json }) => json)].join(" ");

test("from each position, what follows it, and how much of that is not kept any more", () => {
  const log = new FollowLog(3);
  const positions = [log.end];
  for (const [json, ended] of [
    ["a", 0],
    ["b", 1],
    ["c", 1],
    ["d", 0],
    ["e", 1],
  ] as const) {
    log.add(json, ended);
    positions.push(log.end);
  }
  const passages = positions.map((position) => shown(log.after(position, ALL)));
  assert.deepEqual(passages, ["2/1 c d e", "1/1 c d e", "0/0 c d e", "0/0 d e", "0/0 e", "0/0"]);
});

test("a passage of limited length goes on where it ends", () => {
  const log = new FollowLog();
  for (const json of ["aa", "bb", "cc"]) log.add(json, 1);
  const first = log.after({ event: 0, ended: 0 }, 3);
  assert.equal(shown(first), "0/0 aa bb");
  assert.equal(shown(log.after(first.end, 3)), "0/0 cc");
});

test("an event that is longer than the limit is kept until the next one", () => {
  const log = new FollowLog(3);
  log.add("a", 0);
  log.add("longer", 1);
  assert.equal(shown(log.after({ event: 0, ended: 0 }, ALL)), "1/0 longer");
  log.add("b", 1);
  assert.equal(shown(log.after({ event: 0, ended: 0 }, ALL)), "2/1 b");
});

test("a stream that goes on for long keeps its numbers", () => {
  const log = new FollowLog(10);
  for (let index = 1; index <= 5000; index++) log.add(String(index % 10), 1);
  assert.equal(shown(log.after({ event: 4000, ended: 4000 }, ALL)), "990/990 1 2 3 4 5 6 7 8 9 0");
  assert.equal(shown(log.after({ event: 4998, ended: 4998 }, ALL)), "0/0 9 0");
});

test("a position that the stream has never been at is not one of its positions", () => {
  const log = new FollowLog(2);
  for (const ended of [1, 1, 0, 1]) log.add("x", ended);
  const has = (event: number, ended: number) => log.has({ event, ended });
  assert.ok(has(0, 0) && has(1, 1) && has(2, 2) && has(3, 2) && has(4, 3));
  assert.ok(!has(5, 3), "later than the last event");
  assert.ok(!has(3, 3) && !has(4, 2), "another number of requests");
  assert.ok(!has(1, 3), "more requests than had ended by then");
});

test("an event that stands for missing ones counts as many when it is missing itself", () => {
  const log = new FollowLog(2);
  log.add("a", 0);
  const position = log.end;
  log.add("!", 3, 40);
  assert.equal(shown(log.after(position, ALL)), "0/0 !");
  assert.ok(log.has({ event: 41, ended: 3 }) && !log.has({ event: 20, ended: 1 }));
  log.add("b", 1);
  log.add("c", 0);
  assert.equal(shown(log.after(position, ALL)), "40/3 b c");
});
