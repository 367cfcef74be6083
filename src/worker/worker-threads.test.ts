import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { Worker } from "node:worker_threads";
import { WorkerThreads } from "./worker-threads.ts";

test("a spare thread is taken once; those that nothing takes are ended", async (t) => {
  const started: Worker[] = [];
  const remember = (thread: Worker) => started.push(thread);
  process.on("worker", remember);
  t.after(() => process.off("worker", remember));
  const threads = new WorkerThreads(2);
  const first = threads.take(0);
  const replacement = threads.take(0);
  t.after(() => Promise.all([first.terminate(), replacement.terminate()]));
  await Promise.all([first, replacement].map((thread) => once(thread, "online")));
  const [, spare] = started;
  assert.ok(spare !== undefined && spare !== first && spare !== replacement && first !== replacement);
  const ended = once(spare, "exit", { signal: AbortSignal.timeout(10_000) });
  threads.close();
  await ended;
  assert.equal(started.length, 3);
});
