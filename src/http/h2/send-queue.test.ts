import assert from "node:assert/strict";
import { test } from "node:test";
import { type Sender, SendQueue } from "./send-queue.ts";

interface Named extends Sender {
  readonly name: string;
}

const sender = (name: string, urgency = 3, incremental = true): Named => ({
  name,
  urgency,
  incremental,
  queued: false,
});

/** The order of `turns` turns while every stream always has more to send. */
function order(senders: readonly Named[], turns: number): string {
  const queue = new SendQueue<Named>();
  for (const each of senders) queue.add(each);
  let names = "";
  for (let i = 0; i < turns; i++) {
    const next = queue.take();
    if (next === undefined) break;
    names += next.name;
    queue.add(next, true);
  }
  return names;
}

test("streams of equal urgency share turns; one that is not incremental keeps its turn; urgent ones go first", () => {
  assert.equal(order([sender("a"), sender("b"), sender("c")], 7), "abcabca");
  assert.equal(order([sender("a", 3, false), sender("b", 3, false)], 3), "aaa");
  assert.equal(order([sender("a", 7), sender("b", 0), sender("c", 0)], 4), "bcbc");
});

test("a stream waits once, however often it is added", () => {
  const queue = new SendQueue<Named>();
  const one = sender("a");
  queue.add(one);
  queue.add(one);
  assert.equal(queue.size, 1);
  assert.equal(queue.take(), one);
  assert.equal(queue.take(), undefined);
  queue.add(one);
  assert.equal(queue.size, 1);
});

test("one that leaves the queue has no turn, and the others keep theirs", () => {
  const queue = new SendQueue<Named>();
  const [a, b, c] = [sender("a"), sender("b"), sender("c")];
  for (const each of [a, b, c]) queue.add(each);
  queue.remove(b);
  queue.remove(b);
  assert.deepEqual([queue.size, queue.take(), queue.take(), queue.take()], [2, a, c, undefined]);
});
