import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";
import { moduleUrl } from "../../base/app-root.ts";
import { heapProfile, startCpuProfile } from "../../worker/profiles.ts";
import { sourceName } from "./builder.ts";
import { mergeCpuProfiles } from "./cpu.ts";
import { mergeHeapProfiles } from "./heap.ts";

/** A thread that works on command and records its own profiles with the real profilers. */
const worker = new Worker(
  `const { parentPort, workerData } = require("node:worker_threads");
   const kept = [];
   function busyInWorker(ms) {
     let sum = 0;
     for (const end = performance.now() + ms; performance.now() < end; ) for (let i = 0; i < 1e4; i++) sum += Math.sqrt(i);
     return sum;
   }
   function keepInWorker(bytes) {
     for (let i = 0; i < bytes / 1024; i++) kept.push(new Array(128).fill(i));
   }
   Promise.all([import(workerData.cpu), import(workerData.heap)]).then(([cpu, heap]) => {
     let running;
     parentPort.on("message", async ({ call, argument }) => {
       let result;
       if (call === "start") running = await cpu.startCpuProfile(argument);
       if (call === "busy") result = busyInWorker(argument);
       if (call === "stop") result = await running.stop();
       if (call === "keep") keepInWorker(argument);
       if (call === "drop") kept.length = 0;
       if (call === "heap") result = await heap.heapProfile();
       parentPort.postMessage(result);
     });
     parentPort.postMessage("ready");
   });`,
  {
    eval: true,
    workerData: {
      cpu: moduleUrl("worker/profiles").href,
      heap: moduleUrl("worker/profiles").href,
    },
  },
);
const ready = once(worker, "message");
after(() => worker.terminate());

async function ask<T>(call: string, argument = 0): Promise<T> {
  await ready;
  const answer = once(worker, "message");
  worker.postMessage({ call, argument });
  const [result] = await answer;
  return result;
}

function busyInMain(ms: number): number {
  let sum = 0;
  for (const end = performance.now() + ms; performance.now() < end; ) for (let i = 0; i < 1e4; i++) sum += Math.sqrt(i);
  return sum;
}

interface Flat {
  readonly thread: string;
  /** Innermost first. */
  readonly stack: readonly string[];
  readonly files: readonly string[];
  readonly values: readonly number[];
}

function flatten(profile: Profile): Flat[] {
  const text = (index: number | bigint): string => profile.stringTable.strings[Number(index)] ?? "";
  const functions = new Map(profile.function.map((each) => [Number(each.id), each]));
  const locations = new Map(profile.location.map((each) => [Number(each.id), each]));
  return profile.sample.map(({ locationId, value, label }) => {
    const frames = locationId.map((id) => functions.get(Number(locations.get(Number(id))?.line[0]?.functionId)));
    return {
      thread: label.map((each) => `${text(each.key)}=${text(each.str)}`).join(),
      stack: frames.map((frame) => text(frame?.name ?? 0)),
      files: frames.map((frame) => text(frame?.filename ?? 0)),
      values: value.map(Number),
    };
  });
}

function kinds(profile: Profile): string[] {
  const text = (index: number | bigint): string => profile.stringTable.strings[Number(index)] ?? "";
  return profile.sampleType.map(({ type, unit }) => `${text(type)}/${text(unit)}`);
}

test("a CPU profile shows the busy functions of each thread under its name", async () => {
  const main = await startCpuProfile(1000);
  await ask("start", 1000);
  const startedAt = Date.now();
  await ask("busy", 100);
  busyInMain(100);
  const threads = [
    { thread: "main", profile: await main.stop() },
    { thread: "worker-0", profile: await ask<Awaited<ReturnType<typeof main.stop>>>("stop") },
  ];
  const profile = Profile.decode(gunzipSync(await mergeCpuProfiles(threads, 1000)));
  assert.deepEqual(kinds(profile), ["samples/count", "cpu/nanoseconds"]);
  const samples = flatten(profile);
  const of = (name: string, thread: string): Flat[] =>
    samples.filter((each) => each.stack[0] === name && each.thread === `thread=${thread}`);
  assert.ok(of("busyInWorker", "worker-0").length > 0);
  assert.ok(of("busyInMain", "main").length > 0);
  assert.equal(of("busyInMain", "worker-0").length, 0);
  assert.equal(of("busyInMain", "main")[0]?.files[0], "src/admin/pprof/pprof.test.ts");
  assert.ok((of("busyInMain", "main")[0]?.stack.length ?? 0) > 1, "callers are there");
  const nanoseconds = of("busyInWorker", "worker-0").reduce((sum, each) => sum + (each.values[1] ?? 0), 0);
  assert.ok(nanoseconds > 1e6, `${nanoseconds} ns`);
  assert.ok(samples.every(({ stack }) => !stack.includes("(idle)") && !stack.includes("(root)")));
  assert.equal(Number(profile.period), 1e6);
  assert.ok(
    Math.abs(Number(BigInt(profile.timeNanos) / 1_000_000n) - startedAt) < 10_000,
    "the start is in the profile",
  );
});

test("the time of a node is shared out to its lines, and callers keep their order", async () => {
  const frame = (functionName: string, lineNumber: number) => ({
    functionName,
    scriptId: "1",
    url: "node:x",
    lineNumber,
    columnNumber: 0,
  });
  const profile = {
    nodes: [
      { id: 1, callFrame: frame("(root)", -1), children: [2, 4] },
      { id: 2, callFrame: frame("outer", 9), children: [3] },
      {
        id: 3,
        callFrame: frame("inner", 19),
        positionTicks: [
          { line: 21, ticks: 1 },
          { line: 25, ticks: 3 },
        ],
      },
      { id: 4, callFrame: frame("(idle)", -1) },
    ],
    startTime: 0,
    endTime: 5000,
    samples: [3, 3, 3, 3, 4],
    timeDeltas: [0, 500, 500, 500, 500],
  };
  const decoded = Profile.decode(gunzipSync(await mergeCpuProfiles([{ thread: "t", profile }], 2000)));
  const samples = flatten(decoded).map(({ stack, values }) => ({ stack, values }));
  assert.deepEqual(samples, [
    { stack: ["inner", "outer"], values: [1, 500_000] },
    { stack: ["inner", "outer"], values: [3, 1_500_000] },
  ]);
  const lines = decoded.location.map((location) => Number(location.line[0]?.line));
  assert.deepEqual(
    lines.toSorted((a, b) => a - b),
    [10, 20, 21, 25],
  );
});

test("a heap profile shows who allocated what is still alive", async () => {
  await ask("heap");
  await ask("keep", 16 * 1024 * 1024);
  const threads = [
    { thread: "main", profile: await heapProfile() },
    { thread: "worker-0", profile: await ask<Awaited<ReturnType<typeof heapProfile>>>("heap") },
  ];
  const bytes = await mergeHeapProfiles(threads);
  const profile = Profile.decode(gunzipSync(bytes));
  assert.deepEqual(kinds(profile), ["inuse_space/bytes"]);
  const kept = flatten(profile).filter(
    ({ stack, thread }) => stack.includes("keepInWorker") && thread === "thread=worker-0",
  );
  const total = kept.reduce((sum, { values }) => sum + (values[0] ?? 0), 0);
  assert.ok(total > 8 * 1024 * 1024, `${total} bytes of 16 MiB seen`);

  await ask("drop");
  const profileAfter = await ask<Awaited<ReturnType<typeof heapProfile>>>("heap");
  const dropped = await mergeHeapProfiles([{ thread: "worker-0", profile: profileAfter }]);
  const left = flatten(Profile.decode(gunzipSync(dropped))).filter(({ stack }) => stack.includes("keepInWorker"));
  assert.ok(left.reduce((sum, { values }) => sum + (values[0] ?? 0), 0) < total / 4, "dead objects are not in it");
});

test("files of the package are named from its root, others by their URL", () => {
  assert.equal(sourceName(import.meta.url), "src/admin/pprof/pprof.test.ts");
  assert.equal(sourceName("node:net"), "node:net");
  assert.equal(sourceName("file:///elsewhere/a.js"), "file:///elsewhere/a.js");
});
