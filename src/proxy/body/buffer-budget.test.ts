import assert from "node:assert/strict";
import { test } from "node:test";
import { type ArrivingBody, BufferBudget, BufferShare } from "./buffer-budget.ts";

function shareOf(budget: BufferBudget, address = "192.0.2.1", connection: object = {}, limit = 100): BufferShare {
  return new BufferShare(budget, limit, { address, connection });
}

/** A budget with a clock that the test sets, and bodies that arrive and give way. */
function scene() {
  const clock = { now: 1000 };
  const budget = new BufferBudget(() => clock.now);
  const gone: string[] = [];
  /** Whether a body of `client` finds room for these bytes. */
  const begin = (name: string, bytes: number, address?: string, connection?: object) => {
    const share = shareOf(budget, address, connection);
    const body: ArrivingBody = {
      giveWay(slow) {
        gone.push(`${name}${slow ? " slow" : ""}`);
        share.give(share.taken);
      },
    };
    const more = (count: number): boolean => {
      const taken = share.take(count);
      if (taken) share.arrived(body, count);
      return taken;
    };
    return { share, more, fits: more(bytes) };
  };
  return { clock, budget, gone, begin };
}

test("when there is no room, the body that has been too slow for longest gives way, from any client", () => {
  const { clock, gone, begin } = scene();
  begin("first", 40);
  clock.now += 10;
  const second = begin("second", 40, "192.0.2.2");
  assert.equal(begin("early", 40, "192.0.2.3").fits, false);
  clock.now += 3000;
  assert.equal(begin("late", 40, "192.0.2.3").fits, true);
  assert.deepEqual(gone, ["first slow"]);
  clock.now += 10_000;
  // A byte now and then is not progress: it pays for less time than has passed.
  second.more(1);
  assert.equal(begin("last", 60, "192.0.2.3").fits, true);
  assert.deepEqual(gone, ["first slow", "late slow", "second slow"]);
});

test("a body that is complete, or that the gateway does not read, never counts as slow", () => {
  const { clock, gone, begin } = scene();
  begin("whole", 60).share.stopArriving();
  clock.now += 60_000;
  assert.equal(begin("other", 50, "192.0.2.2").fits, false);
  assert.deepEqual(gone, []);
  begin("slow", 40, "192.0.2.2");
  clock.now += 60_000;
  assert.equal(begin("next", 40, "192.0.2.3").fits, true);
  assert.deepEqual(gone, ["slow slow"]);
});

test("the address that holds most gives way to others, then the connection that holds most; no other gives way to these", () => {
  const { gone, begin } = scene();
  const busy = {};
  for (let i = 0; i < 4; i++) begin(`busy ${i}`, 20, "192.0.2.1", busy);
  begin("neighbour", 10, "192.0.2.1");
  assert.equal(begin("more", 20, "192.0.2.1", busy).fits, false);
  assert.equal(begin("other", 30, "192.0.2.2").fits, true);
  assert.equal(begin("another neighbour", 20, "192.0.2.1").fits, true);
  assert.deepEqual(gone, ["busy 0", "busy 1"]);
});

test("optional bytes displace no body", () => {
  const { clock, gone, begin, budget } = scene();
  begin("slow", 80);
  clock.now += 60_000;
  assert.equal(shareOf(budget, "192.0.2.2").tryTake(40), false);
  assert.deepEqual(gone, []);
});

test("all shares together stay within the limit of the budget; bytes that do not fit are not counted", () => {
  const budget = new BufferBudget();
  const [one, other] = [shareOf(budget), shareOf(budget)];
  assert.deepEqual([one.take(60), other.take(41), other.take(40), one.take(1)], [true, false, true, false]);
  assert.equal(budget.used, 100);
  one.give(10);
  assert.equal(other.take(10), true);
});

test("a share returns no more than it took, and all of it at the end", () => {
  const budget = new BufferBudget();
  const [one, other] = [shareOf(budget), shareOf(budget)];
  one.take(30);
  other.take(50);
  one.give(40);
  assert.equal(budget.used, 50);
  one.take(20);
  one.close();
  assert.equal(budget.used, 50);
});

test("bytes that arrive after the end of an exchange are not counted: they would never be returned", () => {
  const budget = new BufferBudget();
  const share = shareOf(budget);
  share.close();
  assert.equal(share.take(1000), true);
  assert.equal(budget.used, 0);
});
