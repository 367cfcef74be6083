import assert from "node:assert/strict";
import { test } from "node:test";
import type { Activation } from "../cel/index.ts";
import type { TraceEvent } from "./events.ts";
import { FollowCounters } from "./follow-counters.ts";
import { type FollowedBatch, Follower } from "./follower.ts";
import type { Outcome } from "./tracer.ts";

const OPTIONS = { reveal: false, maxBodyBytes: 1024 * 1024 };
const outcome =
  (status: number): Outcome =>
  (): Activation => ({ response: { status, headers: [] } });

/** A follower, and what it has posted: the types of each request's events. */
function following(
  t: { mock: { timers: { enable(o: { apis: ["setTimeout"] }): void; tick(ms: number): void } } },
  where?: string,
) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const batches: FollowedBatch[] = [];
  const counters = new FollowCounters();
  const post = (batch: FollowedBatch) => void batches.push(batch);
  const follower = new Follower({ functions: "", where }, OPTIONS, counters.begin(0, 1), post);
  /** `busy`: the main thread takes none of the messages. */
  const posted = ({ busy = false } = {}): string[] => {
    t.mock.timers.tick(20);
    return batches.splice(0).flatMap(({ text, lost, requests }) => {
      if (!busy) counters.received(0, text.length);
      let at = 0;
      const said = requests.map(({ request, lengths, ended }) => {
        const types = lengths.map((length) => {
          const { message } = JSON.parse(text.slice(at, at + length)) as TraceEvent;
          at += length;
          return message.type === "dropped" ? `dropped ${message.count}` : message.type;
        });
        return `${request}: ${[...types, ...(ended ? ["."] : [])].join(" ")}`;
      });
      return lost === undefined ? said : [`lost ${JSON.stringify(lost)}`, ...said];
    });
  };
  return { follower, posted, counters };
}

test("with where, a request is shown at its end, whole or not at all", (t) => {
  const { follower, posted } = following(t, "response.code == 500");
  const [first, second, third] = [follower.begin(0), follower.begin(0), follower.begin(0)];
  for (const each of [first, second, third]) each.emit("info", { type: "requestStarted" });
  assert.deepEqual(posted(), []);
  first.finish(outcome(200));
  third.finish();
  second.emit("error", { type: "requestFinished", status: 500, error: null });
  second.finish(outcome(500));
  assert.deepEqual(posted(), ["1: requestStarted requestFinished ."]);
});

test("requests that hold more than there is room for keep their end and a count", (t) => {
  const { follower, posted } = following(t, "response.code == 500");
  const body = "x".repeat(1024 * 1024);
  const large = follower.begin(0);
  for (let i = 0; i < 9; i++) large.emit("info", { type: "bodySnapshot", stage: "response", body });
  const small = follower.begin(0);
  small.emit("info", { type: "requestStarted" });
  for (const each of [large, small]) {
    each.emit("info", { type: "requestFinished", status: 500, error: null });
    each.finish(outcome(500));
  }
  assert.deepEqual(posted(), ["1: dropped 9 requestFinished .", "2: requestStarted requestFinished ."]);
  for (const number of [3, 4]) {
    const again = follower.begin(0);
    for (let i = 0; i < 7; i++) again.emit("info", { type: "bodySnapshot", stage: "response", body });
    again.finish(outcome(500));
    assert.match(posted()[0] ?? "", new RegExp(`^${number}: (bodySnapshot ){7}\\.$`), "there is room again");
  }
});

test("requests beyond the number that may be held keep their end and a count", (t) => {
  const { follower, posted } = following(t, "response.code == 500");
  const many = Array.from({ length: 2001 }, () => follower.begin(0));
  const last = many.at(-1);
  last?.emit("info", { type: "requestStarted" });
  last?.emit("info", { type: "requestFinished", status: 500, error: null });
  last?.finish(outcome(500));
  assert.deepEqual(posted(), ["1: dropped 1 requestFinished ."]);
});

test("nothing is posted for a follower that has gone", (t) => {
  const { follower, posted } = following(t);
  const sink = follower.begin(0);
  sink.emit("info", { type: "requestStarted" });
  follower.close();
  sink.emit("info", { type: "requestFinished", status: 200, error: null });
  sink.finish();
  assert.deepEqual(posted(), []);
});

test("while too much is on its way, events are dropped; the next message says what, and what goes on", (t) => {
  const { follower, posted, counters } = following(t);
  const body = "x".repeat(1024 * 1024);
  const [large, ends, goesOn] = [follower.begin(0), follower.begin(0), follower.begin(0)];
  for (const each of [large, ends, goesOn]) each.emit("info", { type: "requestStarted" });
  for (let i = 0; i < 4; i++) large.emit("info", { type: "bodySnapshot", stage: "response", body });
  assert.equal(posted({ busy: true }).length, 7);
  const [short, began] = [follower.begin(0), follower.begin(0)];
  for (const each of [short, began]) each.emit("info", { type: "requestStarted" });
  for (const each of [large, short]) each.finish();
  assert.deepEqual(posted({ busy: true }), []);
  ends.emit("info", { type: "requestFinished", status: 200, error: null });
  ends.finish();
  counters.received(0, 5 * 1024 * 1024);
  assert.deepEqual(counters.producedBy(0, 1), { events: 10, begun: 5 });
  const lost = { events: 2, begun: 2, inProgress: [3, 5, 2] };
  assert.deepEqual(posted(), [`lost ${JSON.stringify(lost)}`, "2: requestFinished ."]);
  goesOn.emit("info", { type: "requestFinished", status: 200, error: null });
  goesOn.finish();
  assert.deepEqual(posted(), ["3: requestFinished ."]);
});

test("what was dropped is said even if nothing else happens", (t) => {
  const { follower, posted, counters } = following(t);
  const sink = follower.begin(0);
  for (let i = 0; i < 4; i++)
    sink.emit("info", { type: "bodySnapshot", stage: "response", body: "x".repeat(1024 * 1024) });
  posted({ busy: true });
  sink.emit("info", { type: "requestStarted" });
  assert.deepEqual(posted({ busy: true }), []);
  counters.received(0, 5 * 1024 * 1024);
  assert.deepEqual(posted(), ['lost {"events":1,"begun":0,"inProgress":[1]}']);
});
