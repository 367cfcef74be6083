import assert from "node:assert/strict";
import { test } from "node:test";
import { FollowLog, type Passage, type Position } from "./follow-log.ts";

const ALL = 1000;

/** The events of a passage, behind the number of those that are missing. */
const shown = ({ missing, events }: Passage): string =>
  [`${missing.events}/${missing.ended}`, ...events.map(({ json }) => json)].join(" ");

/** Adds events with which so many requests begin and end. */
function adding(log: FollowLog): (json: string, ended?: number, events?: number) => void {
  let requests = 0;
  return (json, ended = 0, events) => {
    const numbers = Array.from({ length: ended }, () => ++requests);
    log.add(json, { ended: numbers, begun: requests, events });
  };
}

const at = (event: number, ended: number): Position => ({ event, ended, begun: ended });

test("from each position, what follows it, and how much of that is not kept any more", () => {
  const log = new FollowLog(3);
  const add = adding(log);
  const positions = [log.end];
  for (const [json, ended] of [
    ["a", 0],
    ["b", 1],
    ["c", 1],
    ["d", 0],
    ["e", 1],
  ] as const) {
    add(json, ended);
    positions.push(log.end);
  }
  const passages = positions.map((position) => shown(log.after(position, ALL)));
  assert.deepEqual(passages, ["2/1 c d e", "1/1 c d e", "0/0 c d e", "0/0 d e", "0/0 e", "0/0"]);
});

test("a passage of limited length goes on where it ends", () => {
  const log = new FollowLog();
  const add = adding(log);
  for (const json of ["aa", "bb", "cc"]) add(json, 1);
  const first = log.after(at(0, 0), 3);
  assert.equal(shown(first), "0/0 aa bb");
  assert.equal(shown(log.after(first.end, 3)), "0/0 cc");
});

test("an event that is longer than the limit is kept until the next one", () => {
  const log = new FollowLog(3);
  const add = adding(log);
  add("a", 0);
  add("longer", 1);
  assert.equal(shown(log.after(at(0, 0), ALL)), "1/0 longer");
  add("b", 1);
  assert.equal(shown(log.after(at(0, 0), ALL)), "2/1 b");
});

test("a stream that goes on for long keeps its numbers", () => {
  const log = new FollowLog(10);
  const add = adding(log);
  for (let index = 1; index <= 5000; index++) add(String(index % 10), 1);
  assert.equal(shown(log.after(at(4000, 4000), ALL)), "990/990 1 2 3 4 5 6 7 8 9 0");
  assert.equal(shown(log.after(at(4998, 4998), ALL)), "0/0 9 0");
});

test("a position that the stream has never been at is not one of its positions", () => {
  const log = new FollowLog(2);
  const add = adding(log);
  for (const ended of [1, 1, 0, 1]) add("x", ended);
  const has = (event: number, ended: number) => log.has(at(event, ended));
  assert.ok(has(0, 0) && has(1, 1) && has(2, 2) && has(3, 2) && has(4, 3));
  assert.ok(!has(5, 3), "later than the last event");
  assert.ok(!has(3, 3) && !has(4, 2), "another number of requests");
  assert.ok(!has(1, 3), "more requests than had ended by then");
});

test("an event that stands for missing ones counts as many when it is missing itself", () => {
  const log = new FollowLog(2);
  const add = adding(log);
  add("a", 0);
  const position = log.end;
  add("!", 3, 40);
  assert.equal(shown(log.after(position, ALL)), "0/0 !");
  assert.ok(log.has(at(41, 3)) && !log.has(at(20, 1)));
  add("b", 1);
  add("c", 0);
  assert.equal(shown(log.after(position, ALL)), "40/3 b c");
});

test("of missing ends, those of requests that had begun before are named", () => {
  const log = new FollowLog(1);
  log.add("1 begins", { ended: [], begun: 1 });
  log.add("2 begins", { ended: [], begun: 2 });
  const position = log.end;
  log.add("3 begins", { ended: [], begun: 3 });
  log.add("3 ends", { ended: [3], begun: 3 });
  log.add("1 ends", { ended: [1], begun: 3 });
  log.add("2 goes on", { ended: [], begun: 3 });
  assert.deepEqual(log.after(position, ALL).missing, { events: 3, ended: 2, endedOf: [1] });
});
