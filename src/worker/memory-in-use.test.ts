import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { containerBytes, residentBytes } from "./memory-in-use.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tracegate-cgroup-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(folder: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(join(root, folder), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, folder, name), text);
}

test("version 2: what the container uses, sockets included, without files", () => {
  const stat = "anon 600\nfile 300\nsock 70\nslab_reclaimable 10\ninactive_file 200\nactive_file 90\n";
  write("pod/gateway", { "memory.current": "1000\n", "memory.stat": stat });
  write("", { "memory.stat": "" });
  assert.equal(containerBytes(root, "0::/pod/gateway\n")(), 700);
});

test("version 2 as a container sees it: its own folder is the root", () => {
  write("", { "memory.current": "1000\n", "memory.stat": "inactive_file 200\nactive_file 100\n" });
  assert.equal(containerBytes(root, "0::/\n")(), 700);
  assert.equal(containerBytes(root, "0::/kubepods/of-the-host\n")(), 700);
});

test("version 1: the sums over the folders below", () => {
  const stat = "cache 1\nactive_file 1\ninactive_file 2\ntotal_active_file 100\ntotal_inactive_file 50\n";
  write("memory/docker/abc", { "memory.usage_in_bytes": "1000\n", "memory.stat": stat });
  const own = "5:devices:/\n4:memory:/docker/abc\n0::/\n";
  assert.equal(containerBytes(root, own)(), 850);
  write("memory", { "memory.usage_in_bytes": "500\n", "memory.stat": stat });
  assert.equal(containerBytes(root, "4:memory:/elsewhere\n")(), 350);
});

test("without these files, or one of them: the resident memory of the process", () => {
  const isResident = (used: number): void => {
    const resident = residentBytes();
    assert.ok(used > 1024 * 1024 && used < 4 * resident && resident < 4 * used);
  };
  isResident(containerBytes(root, "")());
  write("", { "memory.current": "1000\n" });
  isResident(containerBytes(root, "0::/\n")());
});

test("mapped files of the process do not count", {
  skip: process.platform !== "linux" && "reads /proc",
}, () => {
  // At least the code of Node.js.
  assert.ok(residentBytes() < process.memoryUsage.rss() - 20 * 1024 * 1024);
});
