import assert from "node:assert/strict";
import { test } from "node:test";
import { processMetrics } from "./process-metrics.ts";

async function startTime(): Promise<number> {
  const metrics = await processMetrics({ tag: "1", synchronized: true });
  return Number(metrics.find(({ name }) => name === "process_start_time_seconds")?.samples[0]?.value);
}

test("the start of the process is a time in the past that never changes: its changes count as restarts", async () => {
  const first = await startTime();
  const times = new Set([first, await startTime(), await startTime(), await startTime()]);
  assert.equal(times.size, 1);
  const age = Date.now() / 1000 - first;
  assert.ok(age > 0 && age < 600, String(age));
});
