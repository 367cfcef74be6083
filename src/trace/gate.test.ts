import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { moduleUrl } from "../base/app-root.ts";
import { MAX_WATCHERS, TraceGate } from "./gate.ts";

test("a watcher is claimed once, and counts as armed until then", () => {
  const gate = new TraceGate();
  assert.equal(gate.armed, false);
  gate.arm(0);
  gate.arm(MAX_WATCHERS - 1);
  assert.equal(gate.claim(1), false, "no watcher waits there");
  assert.equal(gate.claim(0), true);
  assert.equal(gate.claim(0), false, "taken");
  assert.equal(gate.armed, true);
  assert.equal(gate.claim(MAX_WATCHERS - 1), true);
  assert.equal(gate.armed, false);
});

test("every thread can see which thread claimed a watcher, until it ends", () => {
  const gate = new TraceGate();
  gate.arm(2);
  assert.equal(gate.claimant(2), undefined);
  new TraceGate(gate.buffer, 5).claim(2);
  assert.equal(gate.claimant(2), 5);
  gate.free(2);
  assert.equal(gate.claimant(2), undefined);
});

test("a watcher that leaves frees its cell, armed or claimed", () => {
  const gate = new TraceGate();
  gate.arm(3);
  gate.free(3);
  assert.equal(gate.armed, false);
  assert.equal(gate.claim(3), false);
  gate.arm(3);
  assert.equal(gate.claim(3), true);
  gate.free(3);
  gate.free(3);
  assert.equal(gate.armed, false);
  gate.arm(3);
  assert.equal(gate.armed, true);
});

test("threads that claim at the same time: each watcher goes to exactly one", async () => {
  const gate = new TraceGate();
  const slots = MAX_WATCHERS;
  const source = `
    const { parentPort, workerData } = require("node:worker_threads");
    import(workerData.module).then(({ TraceGate }) => {
      const gate = new TraceGate(workerData.buffer);
      parentPort.postMessage("ready");
      parentPort.once("message", () => {
        const claimed = [];
        while (gate.armed) for (let slot = 0; slot < ${slots}; slot++) if (gate.claim(slot)) claimed.push(slot);
        parentPort.postMessage(claimed);
      });
    });`;
  const workerData = { buffer: gate.buffer, module: moduleUrl("trace/gate").href };
  const threads = [1, 2].map(() => new Worker(source, { eval: true, workerData }));
  await Promise.all(threads.map((thread) => once(thread, "message")));
  for (let slot = 0; slot < slots; slot++) gate.arm(slot);
  const answers = threads.map((thread) => once(thread, "message"));
  for (const thread of threads) thread.postMessage("go");
  const claimed = (await Promise.all(answers)).flat(2);
  assert.deepEqual(
    claimed.toSorted((a, b) => a - b),
    Array.from({ length: slots }, (_, slot) => slot),
  );
  await Promise.all(threads.map((thread) => thread.terminate()));
});
