import assert from "node:assert/strict";
import { test } from "node:test";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { MemoryPressure } from "../proxy/overload/memory-pressure.ts";
import { MemoryWatch } from "./memory-watch.ts";

/** A process with a limit of 1000 bytes, of which 900 may be used. */
class TestProcess {
  time = 0;
  resident = 0;
  readonly pressure = new MemoryPressure(2);
  readonly lines: string[] = [];
  readonly #watch: MemoryWatch;

  constructor() {
    const output = new LogOutput(parseLogFilter("info"), "json", (line) => this.lines.push(JSON.parse(line).message));
    const system = { now: () => this.time, resident: () => this.resident };
    this.#watch = new MemoryWatch(this.pressure, { limit: 1000, share: 0.9 }, output.logger("gateway"), system);
    this.#watch.close();
  }

  sample(resident: number, held: readonly number[], after = 100): boolean {
    this.time += after;
    this.resident = resident;
    for (const [index, bytes] of held.entries()) this.pressure.hold(index, bytes);
    this.#watch.sample();
    return this.pressure.active;
  }
}

test("pressure begins when the share is resident, and ends below 95 % of it", () => {
  const process = new TestProcess();
  assert.equal(process.sample(899, [300, 300]), false);
  assert.equal(process.sample(900, [300, 300]), true);
  assert.equal(process.sample(860, [300, 300]), true);
  assert.equal(process.sample(854, [300, 300]), false);
  assert.deepEqual(process.lines, ["memory is almost full: new work is turned away", "memory is available again"]);
});

test("memory that was freed but stays resident is no pressure", () => {
  const process = new TestProcess();
  assert.equal(process.sample(950, [200, 199]), false);
  assert.equal(process.sample(950, [200, 200]), true);
  assert.equal(process.sample(950, [200, 100]), true);
  assert.equal(process.sample(950, [200, 99]), false);
});

test("workers collect garbage before that, less and less often while it does not help", () => {
  const process = new TestProcess();
  process.sample(809, [100, 100], 10_000);
  assert.equal(process.pressure.collections, 0);
  process.sample(810, [100, 100]);
  assert.equal(process.pressure.collections, 1);
  process.sample(810, [100, 100], 4_999);
  assert.equal(process.pressure.collections, 1);
  process.sample(810, [100, 100], 1);
  assert.equal(process.pressure.collections, 2);
  process.sample(810, [100, 100], 9_999);
  assert.equal(process.pressure.collections, 2);
  process.sample(810, [100, 100], 1);
  assert.equal(process.pressure.collections, 3);
});

test("while there is pressure they go on: nothing else would make them", () => {
  const process = new TestProcess();
  for (let i = 0; i < 6; i++) process.sample(950, [500, 100], 5_000);
  assert.equal(process.pressure.collections, 6);
});
