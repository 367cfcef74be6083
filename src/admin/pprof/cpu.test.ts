import assert from "node:assert/strict";
import { after, test } from "node:test";
import { decodeProfile, type Flat, flatten, kinds, ProfiledThread } from "../../../test/helpers/admin/profiles.ts";
import { startCpuProfile } from "../../worker/profiles.ts";
import { mergeCpuProfiles } from "./cpu.ts";

const thread = new ProfiledThread();
after(() => thread.stop());

function busyInMain(ms: number): number {
  let sum = 0;
  for (const end = performance.now() + ms; performance.now() < end; ) for (let i = 0; i < 1e4; i++) sum += Math.sqrt(i);
  return sum;
}

test("a CPU profile shows the busy functions of each thread under its name", async () => {
  const main = await startCpuProfile(1000);
  await thread.ask("start", 1000);
  const startedAt = Date.now();
  await thread.ask("busy", 100);
  busyInMain(100);
  const threads = [
    { thread: "main", profile: await main.stop() },
    { thread: "worker-0", profile: await thread.ask<Awaited<ReturnType<typeof main.stop>>>("stop") },
  ];
  const profile = decodeProfile(await mergeCpuProfiles(threads, 1000));
  assert.deepEqual(kinds(profile), ["samples/count", "cpu/nanoseconds"]);
  const samples = flatten(profile);
  const of = (name: string, thread: string): Flat[] =>
    samples.filter((each) => each.stack[0] === name && each.thread === `thread=${thread}`);
  assert.ok(of("busyInWorker", "worker-0").length > 0);
  assert.ok(of("busyInMain", "main").length > 0);
  assert.equal(of("busyInMain", "worker-0").length, 0);
  assert.equal(of("busyInMain", "main")[0]?.files[0], "src/admin/pprof/cpu.test.ts");
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

test("the time of a node is distributed over its lines, and callers keep their order", async () => {
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
  const decoded = decodeProfile(await mergeCpuProfiles([{ thread: "t", profile }], 2000));
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
