import assert from "node:assert/strict";
import { test } from "node:test";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { MemoryPressure } from "../proxy/overload/memory-pressure.ts";
import { MemoryWatch } from "./memory-watch.ts";

/** A process with a limit of 1000 bytes, of which 900 may be used; at rest it needs 200, of which its workers hold 100. */
class TestProcess {
  time = 0;
  used = 0;
  /** The part of it that the system uses for sockets. */
  ofSystem = 0;
  readonly pressure = new MemoryPressure(2);
  readonly lines: string[] = [];
  readonly #watch: MemoryWatch;

  constructor(atRest = 200, held: readonly number[] = [50, 50]) {
    const output = new LogOutput(parseLogFilter("info"), "json", (line) => this.lines.push(JSON.parse(line).message));
    const resident = (): number => this.used - this.ofSystem;
    const limit = { limit: 1000, share: 0.9, used: () => this.used, resident };
    this.#watch = new MemoryWatch(this.pressure, limit, output.logger("gateway"), () => this.time);
    this.#watch.close();
    this.sample(atRest, held);
  }

  sample(used: number, held: readonly number[], after = 100): boolean {
    this.time += after;
    this.used = used;
    for (const [index, bytes] of held.entries()) this.pressure.hold(index, bytes);
    this.#watch.sample();
    return this.pressure.active;
  }
}

test("pressure begins when the share is in use, and ends below 95 % of it", () => {
  const process = new TestProcess();
  assert.equal(process.sample(899, [300, 300]), false);
  assert.equal(process.sample(900, [300, 300]), true);
  assert.equal(process.sample(860, [300, 300]), true);
  assert.equal(process.sample(854, [300, 300]), false);
  assert.deepEqual(process.lines, ["memory is almost full: new work is turned away", "memory is available again"]);
});

test("memory that was freed but stays resident is not pressure", () => {
  const process = new TestProcess();
  assert.equal(process.sample(950, [130, 129]), false);
  assert.equal(process.sample(950, [130, 130]), true);
  assert.equal(process.sample(950, [130, 90]), true);
  assert.equal(process.sample(950, [130, 89]), false);
});

test("what workers hold at rest does not prolong pressure, however many there are", () => {
  const process = new TestProcess(600, [200, 200]);
  assert.equal(process.sample(950, [210, 210]), false);
  assert.equal(process.sample(950, [300, 300]), true);
  assert.equal(process.sample(950, [200, 200]), false);
});

test("if the process at rest takes most of the limit, little memory of the workers counts as much, and the log warns", () => {
  const process = new TestProcess(850);
  assert.equal(process.sample(890, [65, 65]), false);
  assert.equal(process.sample(900, [65, 65]), true);
  assert.match(process.lines[0] ?? "", /leaves little for requests/);
  assert.deepEqual(new TestProcess(809).lines, []);
});

test("memory of the system for sockets counts as held, whatever workers hold", () => {
  const process = new TestProcess();
  process.ofSystem = 159;
  assert.equal(process.sample(900, [50, 50]), false);
  process.ofSystem = 160;
  assert.equal(process.sample(900, [50, 50]), true);
  process.ofSystem = 0;
  assert.equal(process.sample(900, [50, 50]), false);
});

test("near the limit, workers are frugal, unless the memory in use is freed memory", () => {
  const process = new TestProcess();
  process.sample(809, [300, 300]);
  assert.equal(process.pressure.near, false);
  process.sample(810, [300, 300]);
  assert.equal(process.pressure.near, true);
  process.sample(810, [60, 60]);
  assert.equal(process.pressure.near, false);
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

test("collections continue while there is pressure: nothing else would cause them", () => {
  const process = new TestProcess();
  for (let i = 0; i < 6; i++) process.sample(950, [500, 100], 5_000);
  assert.equal(process.pressure.collections, 6);
});
