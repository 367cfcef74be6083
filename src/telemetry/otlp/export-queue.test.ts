import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { type ExportCounts, ExportQueue, type SendOutcome } from "./export-queue.ts";
import type { Chunk } from "./messages.ts";

const TAKEN: SendOutcome = { type: "taken", rejected: 0, message: "" };
const later = (waitMs?: number): SendOutcome => ({ type: "later", waitMs, message: "down" });

function chunk(count = 1, size = 10): Chunk {
  return { count, bytes: new Uint8Array(size) };
}

/** A queue to a collector whose responses the test sets; `sent` counts the entries of each request. */
function queueOf(outcomes: SendOutcome[] | "never") {
  const counts: ExportCounts = { exported: 0, dropped: { queue_full: 0, failed: 0, rejected: 0, shutdown: 0 } };
  const sent: number[] = [];
  const told: (string | number)[] = [];
  const queue = new ExportQueue(
    (chunks, gone) => {
      sent.push(chunks.reduce((sum, each) => sum + each.count, 0));
      if (outcomes !== "never") return Promise.resolve(outcomes.shift() ?? TAKEN);
      return new Promise((resolve) => gone.addEventListener("abort", () => resolve(later())));
    },
    counts,
    {
      failing: (message) => told.push(message),
      working: (dropped) => told.push(dropped),
      lost: (entries) => told.push(`lost ${entries}`),
    },
    () => 1,
  );
  return { queue, counts, sent, told };
}

/** Lets time pass while promises settle. */
async function pass(t: TestContext, ms: number): Promise<void> {
  await turn();
  t.mock.timers.tick(ms);
  await turn();
}

test("entries that arrive during a request are sent with the next one, up to the size of a request", async () => {
  const { queue, counts, sent } = queueOf([]);
  for (let i = 0; i < 5; i++) queue.add(chunk(200));
  await queue.close(1000);
  assert.deepEqual(sent, [200, 400, 400]);
  assert.equal(counts.exported, 1000);
  const large = queueOf([]);
  for (let i = 0; i < 4; i++) large.queue.add(chunk(1, 600_000));
  await large.queue.close(1000);
  assert.deepEqual(large.sent, [1, 1, 1, 1]);
});

test("the same entries are retried after the collector's delay, or at growing intervals", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { queue, counts, sent, told } = queueOf([later(), later(), later(7000), TAKEN]);
  queue.add(chunk());
  await pass(t, 999);
  assert.equal(sent.length, 1);
  await pass(t, 1);
  assert.equal(sent.length, 2);
  await pass(t, 2000);
  assert.equal(sent.length, 3);
  await pass(t, 6999);
  assert.equal(sent.length, 3);
  await pass(t, 1);
  assert.equal(sent.length, 4);
  assert.equal(counts.exported, 1);
  assert.deepEqual(told, ["down", 0], "reported once, and when it is over");
});

test("after six attempts, or a rejection, entries are dropped and the next ones follow", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const outcomes = [...Array.from({ length: 6 }, () => later()), { type: "rejected", message: "no" } as const, TAKEN];
  const { queue, counts, told } = queueOf(outcomes);
  queue.add(chunk(2));
  for (let i = 0; i < 6; i++) await pass(t, 30_000);
  assert.equal(counts.dropped.failed, 2);
  queue.add(chunk(3));
  await turn();
  assert.equal(counts.dropped.rejected, 3);
  queue.add(chunk(4));
  await turn();
  assert.equal(counts.exported, 4);
  assert.deepEqual(told, ["down", 5]);
});

test("entries that a collector rejects are counted as dropped", async () => {
  const { queue, counts, told } = queueOf([{ type: "taken", rejected: 2, message: "too old" }]);
  queue.add(chunk(5));
  await queue.close(1000);
  assert.deepEqual([counts.exported, counts.dropped.rejected], [3, 2]);
  assert.deepEqual(told, ["the collector rejected 2 of 5 entries: too old"]);
});

test("a collector that does not respond costs a bounded number of entries and bytes", async () => {
  const many = queueOf("never");
  for (let i = 0; i < 100; i++) many.queue.add(chunk(100));
  assert.equal(many.counts.dropped.queue_full, 100 * 100 - 100 - 8100, "one request is in progress, the rest waits");
  const large = queueOf("never");
  for (let i = 0; i < 20; i++) large.queue.add(chunk(1, 1024 * 1024));
  assert.equal(large.counts.dropped.queue_full, 20 - 1 - 8);
  await Promise.all([many.queue.close(0), large.queue.close(0)]);
  assert.equal(many.counts.dropped.shutdown, 8200);
  assert.equal(large.counts.dropped.shutdown, 9);
});

test("at shutdown the queue is sent, with quick retries, and dropped at the deadline", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { queue, counts, sent } = queueOf([later(), later(), TAKEN]);
  queue.add(chunk());
  await turn();
  const closed = queue.close(5000);
  await turn();
  assert.equal(sent.length, 2, "no further request waits for the backoff");
  await pass(t, 100);
  await closed;
  assert.equal(counts.exported, 1);
  queue.add(chunk());
  assert.equal(counts.dropped.shutdown, 1);

  const silent = queueOf("never");
  silent.queue.add(chunk());
  silent.queue.add(chunk(2));
  const given = silent.queue.close(5000);
  await pass(t, 5000);
  await given;
  assert.equal(silent.counts.dropped.shutdown, 3);
  assert.deepEqual(silent.told, ["lost 3"]);
});

test("a shutdown waits a second for a failing collector, not until the deadline", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { queue, counts, told } = queueOf(Array.from({ length: 20 }, () => later()));
  queue.add(chunk(4));
  await turn();
  let closed = false;
  const closing = queue.close(60_000).then(() => {
    closed = true;
  });
  await pass(t, 999);
  assert.equal(closed, false);
  await pass(t, 1);
  await closing;
  assert.equal(counts.dropped.shutdown, 4);
  assert.deepEqual(told, ["down", "lost 4"]);
});
