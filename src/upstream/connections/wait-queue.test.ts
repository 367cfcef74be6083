import assert from "node:assert/strict";
import { test } from "node:test";
import { ProcessCount } from "../loads/process-count.ts";
import { WaitQueue } from "./wait-queue.ts";

/** A request that waits, and how its wait ended. */
class Waiter {
  readonly name: string;
  readonly failures: string[] = [];

  constructor(name: string) {
    this.name = name;
  }

  onConnectFailure(code: string, message: string, times: unknown): void {
    this.failures.push(`${code}: ${message}${times === undefined ? "" : ", tried"}`);
  }
}

/** A queue with a timeout of a second. */
function queueOf(limit: number, full = true): WaitQueue<Waiter> {
  return new WaitQueue(limit, 1000, () => full);
}

const [a, b, c] = ["a", "b", "c"].map((name) => () => new Waiter(name)) as [() => Waiter, () => Waiter, () => Waiter];

test("first in, first out; one that gives up leaves its place", () => {
  const queue = queueOf(10);
  const leaving = queue.add(a());
  const [second, third] = [b(), c()];
  queue.add(second);
  queue.add(third);
  assert.equal(queue.size, 3);
  leaving.cancel();
  assert.equal(queue.first, second);
  assert.equal(queue.shift(), second);
  assert.equal(queue.shift(), third);
  assert.equal(queue.shift(), undefined);
  assert.equal(queue.first, undefined);
});

test("a full queue rejects requests, after `add` has returned, and counts them", async () => {
  const queue = queueOf(1);
  queue.add(a());
  const [refused, gone, roomComes] = [b(), c(), c()];
  queue.add(refused);
  assert.deepEqual(refused.failures, []);
  queue.add(gone).cancel();
  queue.add(roomComes, true);
  await Promise.resolve();
  assert.deepEqual(refused.failures, ["TG_POOL_FULL: no connection is free and 1 requests wait"]);
  assert.deepEqual(gone.failures, [], "it had given up");
  assert.deepEqual(roomComes.failures, [], "a connection is being closed for it");
  assert.equal(queue.overflows, 2);
  assert.equal(queue.size, 2);
  queue.failAll("TG_UPSTREAM_FAILED", "end", {});
});

test("a wait is limited in time, and ends with it", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const queue = queueOf(10);
  const [late, served] = [a(), b()];
  queue.add(late);
  queue.add(served);
  t.mock.timers.tick(500);
  const later = c();
  queue.add(later);
  t.mock.timers.tick(500);
  assert.deepEqual(late.failures, ["TG_UPSTREAM_TIMEOUT: no connection was free in time"]);
  assert.equal(queue.shift(), later);
  t.mock.timers.tick(1000);
  assert.deepEqual(later.failures, [], "it was served");
});

test("the end of a wait says whether the queue waited for room or for a connection that is being opened", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const [full, tried] of [
    [true, ""],
    [false, ", tried"],
  ] as const) {
    const waiter = a();
    assert.equal(queueOf(1, full).add(waiter).forRoom, full);
    t.mock.timers.tick(1000);
    assert.deepEqual(waiter.failures, [`TG_UPSTREAM_TIMEOUT: no connection was free in time${tried}`]);
  }
});

test("a connection that cannot be opened fails all that wait for it", () => {
  const queue = queueOf(10);
  const all = [a(), b()];
  for (const each of all) queue.add(each);
  queue.failAll("TG_UPSTREAM_FAILED", "refused", {});
  assert.deepEqual(
    all.map(({ failures }) => failures),
    [["TG_UPSTREAM_FAILED: refused, tried"], ["TG_UPSTREAM_FAILED: refused, tried"]],
  );
  assert.equal(queue.size, 0);
});

test("queues that share a count share its limit, however their requests leave", () => {
  const count = new ProcessCount();
  const [one, other] = [0, 1].map(() => new WaitQueue<Waiter>(1, 1000, () => true, count)) as [
    WaitQueue<Waiter>,
    WaitQueue<Waiter>,
  ];
  const leave = [
    (wait: ReturnType<typeof one.add>) => wait.cancel(),
    () => one.shift(),
    () => one.failAll("TG_UPSTREAM_FAILED", "refused", {}),
  ];
  for (const each of leave) {
    const wait = one.add(a());
    assert.equal(one.size, 1);
    other.add(b());
    assert.equal(other.size, 0);
    each(wait);
    wait.cancel();
    other.add(c());
    assert.equal(other.size, 1);
    other.shift();
    other.shift();
  }
  assert.equal(other.overflows, 3);
  other.add(a(), true);
  one.add(b(), true);
  assert.deepEqual([one.size, other.size], [1, 1], "a connection is being closed for each");
  for (const each of [one, other]) each.shift();
});
