/**
 * The cost of a record: time to write one for a typical request, and time to look at all records of a full ring, in one process.
 * Run: node bench/micro/recorder.ts
 */
import { RecorderMemory } from "../../src/recorder/memory.ts";
import { Recorder } from "../../src/recorder/recorder.ts";
import { median } from "../lib/stats.ts";

const RECORDS = 200_000;
const ROUNDS = 9;

const memory = RecorderMemory.create(4 * 1024 * 1024, 2 * 1024 * 1024);
const recorder = new Recorder(memory);
const place = recorder.place({
  bind: "8080",
  protocol: "http",
  gateway: "default/default",
  listener: "http",
  route: "default/shop",
  route_rule: "rule",
  backend: "default/cart",
});
const ids = Array.from({ length: 64 }, (_, i) => `0195f3a2-7c1e-4b7a-9d3e-0000${String(i).padStart(8, "0")}`);
const targets = Array.from({ length: 64 }, (_, i) => `/api/v1/users/${i}/cart?page=${i}`);

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
    fields.endpoint = recorder.names.find("10.0.0.7:8080");
    fields.method = recorder.names.findOfClient("GET");
    const target = targets[i & 63] as string;
    recorder.texts(ids[i & 63], "shop.example", target, target.indexOf("?"));
    recorder.close(place, startedAt);
  }
}

const rounds: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const start = performance.now();
  write(RECORDS);
  rounds.push(((performance.now() - start) * 1e6) / RECORDS);
}
console.log(`${median(rounds).toFixed(0)} ns per record (${Math.min(...rounds).toFixed(0)} at best)`);
