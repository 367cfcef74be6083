import assert from "node:assert/strict";
import { test } from "node:test";
import { readThreadMemory } from "../telemetry/thread-memory.ts";
import { memoryReport, parseCgroupMemory, parseSmaps } from "./memory.ts";

test("the report sums the threads, and can be written as JSON", async () => {
  const thread = readThreadMemory();
  const report = await memoryReport([
    { thread: "main", ...thread },
    { thread: "worker-0", ...structuredClone(thread) },
  ]);
  assert.deepEqual(JSON.parse(JSON.stringify(report)), report);
  const { comparable, specific } = report.allocator;
  assert.equal(comparable.allocated_bytes, 2 * (thread.heap_used + thread.external));
  assert.deepEqual(
    specific.threads.map((each) => each.thread),
    ["main", "worker-0"],
  );
  assert.ok(report.process.resident_bytes > thread.heap_used);
  assert.ok(thread.spaces.some((space) => space.name === "old_space" && space.committed > 0));
});

test("smaps fields become snake case and bytes", () => {
  const text =
    "55f2cd0d1000-7ffebdb61000 ---p 00000000 00:00 0    [rollup]\nRss:     1780 kB\nPss_Dirty:   112 kB\nAnonHugePages:   2 kB\n";
  assert.deepEqual(parseSmaps(text), { rss: 1780 * 1024, pss_dirty: 112 * 1024, anon_huge_pages: 2048 });
});

test("the working set of a cgroup excludes inactive file cache; without a limit, the limit is null", () => {
  const stat = "anon 100\nfile 50\ninactive_file 30\n";
  assert.deepEqual(parseCgroupMemory("200\n", "max\n", stat), {
    anon: 100,
    file: 50,
    inactive_file: 30,
    usage: 200,
    working_set: 170,
    limit: null,
  });
  assert.equal(parseCgroupMemory("200\n", "4096\n", stat).limit, 4096);
});
