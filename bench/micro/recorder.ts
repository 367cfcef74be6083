/**
 * The cost of a record: time to write one for a typical request, time to look at all records of a full ring, and memory, in one process.
 * Run: node bench/micro/recorder.ts
 *
 * Node 24.21, two cores under load, time of the processor: 0.2 µs per record; over four full rings, once V8 has compiled it, lookup by id 7 to 8 ms,
 * by trace id 6 ms, scan with an expression 12 ms, the newest 50 as data 13 ms; memory of a worker 0.1 MiB idle, full with failures of 10,000 routes
 * 9.6 MiB, of which 6.9 MiB are shared; with 1,000 routes 6.4 MiB.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { STANDARD_ENVIRONMENT } from "../../src/cel/index.ts";
import { RecorderMemory } from "../../src/recorder/memory.ts";
import { Recorder } from "../../src/recorder/recorder.ts";
import { Records } from "../../src/recorder/records.ts";
import { median } from "../lib/stats.ts";

const RECORDS = 200_000;
const ROUNDS = 9;

const memory = RecorderMemory.create(4 * 1024 * 1024, 2 * 1024 * 1024);
let recorder = new Recorder(memory, 0);
const LABELS = {
  bind: "8080",
  protocol: "http",
  gateway: "default/default",
  listener: "http",
  route: "default/shop",
  route_rule: "rule",
  backend: "default/cart",
};
let place = recorder.place(LABELS);
const ids = Array.from({ length: 64 }, (_, i) => `0195f3a2-7c1e-4b7a-9d3e-0000${String(i).padStart(8, "0")}`);
const paths = Array.from({ length: 64 }, (_, i) => `/api/v1/users/${i}/cart`);

/** Time of the processor that this process has used: other processes do not disturb it much. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function write(count: number): void {
  for (let i = 0; i < count; i++) {
    const startedAt = performance.now();
    const fields = recorder.open(place, startedAt, startedAt + 1);
    fields.generation = 3;
    fields.status = 200;
    fields.received = 17;
    fields.sent = 4096;
    fields.attempts = 1;
    fields.beforeCall = 0.1;
    fields.untilAnswer = 0.8;
    recorder.endpoint("10.0.0.7:8080", false);
    recorder.message("GET", "HTTP/1.1");
    recorder.texts(ids[i & 63], "shop.example", paths[i & 63] as string);
    recorder.close(place, startedAt);
  }
}

const rounds: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const start = cpuMs();
  write(RECORDS);
  rounds.push(((cpuMs() - start) * 1e6) / RECORDS);
}
console.log(`${median(rounds).toFixed(0)} ns per record (${Math.min(...rounds).toFixed(0)} at best)`);

// Four workers with full rings, of which the kept areas are empty.
const memories = [memory, ...[1, 2, 3].map(() => RecorderMemory.create(4 * 1024 * 1024, 2 * 1024 * 1024))];
for (const [index, each] of memories.slice(1).entries()) {
  recorder = new Recorder(each, index + 1);
  place = recorder.place(LABELS);
  write(each.recent.slots);
}
const records = new Records(memories);
const where = STANDARD_ENVIRONMENT.compileCondition('response.code == 403 && route == "default/shop"', "record");

function time(name: string, search: () => unknown): void {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = cpuMs();
    search();
    times.push(cpuMs() - start);
  }
  console.log(`${name}: ${median(times).toFixed(1)} ms, the first time ${times[0]?.toFixed(1)} ms`);
}

time("lookup by id", () => records.withId("0195f3a2-7c1e-4b7a-9d3e-0000ffffffff"));
time("lookup by trace id", () => records.withId("0af7651916cd43dd8448eb211c80319c"));
time("scan with where", () => records.find({ since: 0, where, limit: 50 }));
time("the newest 50", () => records.find({ since: 0, limit: 50 }));

/** Routes of the full recorder, all of which have failures. */
const ROUTES = 10_000;
/** Bytes of a page: the system allocates memory in these. */
const PAGE = 4096;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** MiB of shared memory that has been written to, and of the heap. */
function usedBy(shared: RecorderMemory): { readonly shared: number; readonly heap: number } {
  const words = new Float64Array(shared.buffer);
  const perPage = PAGE / Float64Array.BYTES_PER_ELEMENT;
  let pages = 0;
  for (let at = 0; at < words.length; at += perPage) if (words.subarray(at, at + perPage).some(Boolean)) pages++;
  // The first time leaves what finalizers hold on to.
  for (let i = 0; i < 4; i++) collect();
  return { shared: (pages * PAGE) / 2 ** 20, heap: process.memoryUsage().heapUsed / 2 ** 20 };
}

function printMemory(state: string, shared: RecorderMemory, before: number): void {
  const used = usedBy(shared);
  console.log(
    `memory, ${state}: ${(used.shared + used.heap - before).toFixed(2)} MiB, of which ${used.shared.toFixed(2)} shared`,
  );
}

/** Fills all that records can take. Returns what a worker holds on to. */
function fill(shared: RecorderMemory): unknown {
  write(2 * shared.recent.slots);
  const places = Array.from({ length: ROUTES }, (_, i) => recorder.place({ ...LABELS, route: `default/shop-${i}` }));
  for (let i = 0; i < 4 * shared.kept.slots; i++) {
    place = places[i % ROUTES] as typeof place;
    recorder.open(place, i, i + 1).status = 503;
    recorder.texts(`${i}`.padStart(36, "0"), `host-${i % ROUTES}.example`, "/api/v1/users/42/cart");
    recorder.close(place, i * 5);
  }
  return places;
}

// Twice: the first time, code is loaded and compiled.
for (const counted of [false, true]) {
  const shared = RecorderMemory.create(4 * 1024 * 1024, 2 * 1024 * 1024);
  // Nothing of the recorder before this one counts.
  recorder = new Recorder(RecorderMemory.create(1, 1), 0);
  place = recorder.place(LABELS);
  const { heap: before } = usedBy(shared);
  recorder = new Recorder(shared, 0);
  place = recorder.place(LABELS);
  if (counted) printMemory("idle", shared, before);
  const held = fill(shared);
  if (counted && held !== undefined) printMemory(`full, ${ROUTES} routes`, shared, before);
}
