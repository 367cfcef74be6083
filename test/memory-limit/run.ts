/**
 * npm run memory-limit
 * Runs the tests of this folder: a gateway in a control group of version 2 with a limit of memory, as a container has it. They need
 * root and a system whose controller of memory has that version. Elsewhere they run in a Linux of their own, user-mode-linux,
 * a program that needs no privileges and shares the files of this system; 77 means that it is not installed, or cannot start a process here:
 * it does not support the registers of every processor.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { appRoot } from "../../src/base/app-root.ts";
import { ControlGroup } from "./control-group.ts";

const TEST = `${appRoot}test/memory-limit/memory-limit.e2e.ts`;
/** Milliseconds for all tests; they take a minute. */
const LIMIT = 300_000;

if (canLimit()) await runHere();
else process.exitCode = runInside();

function canLimit(): boolean {
  try {
    ControlGroup.create("probe")[Symbol.dispose]();
    return true;
  } catch {
    return false;
  }
}

async function runHere(): Promise<void> {
  const tests = run({ files: [TEST], cwd: appRoot, timeout: LIMIT });
  tests.on("test:fail", () => {
    process.exitCode = 1;
  });
  await pipeline(tests, new spec(), process.stdout, { end: false });
}

/** Returns the exit status. The root of the other system is that of this one; what it mounts is not seen here. */
function runInside(): number {
  if (spawnSync("linux.uml", ["--version"]).error !== undefined) {
    console.log("this machine cannot limit memory by cgroups version 2; install user-mode-linux");
    return 77;
  }
  const folder = mkdtempSync(join(tmpdir(), "tracegate-uml-"));
  const begun = join(folder, "begun");
  const code = join(folder, "code");
  const init = join(folder, "init");
  writeFileSync(
    init,
    `#!/bin/sh
echo >'${begun}'
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
ulimit -n 65536
export PATH='${process.env.PATH}' HOME='${folder}' TMPDIR='${folder}'
cd '${appRoot}'
'${process.execPath}' '${import.meta.filename}'
echo $? >'${code}'
echo o >/proc/sysrq-trigger
sleep 60
`,
    { mode: 0o755 },
  );
  try {
    const args = [
      "mem=2G",
      "root=/dev/root",
      "rootfstype=hostfs",
      "rw",
      `init=${init}`,
      "con=null",
      "con0=fd:0,fd:1",
      "quiet",
    ];
    spawnSync("linux.uml", args, { stdio: ["ignore", "inherit", "inherit"], timeout: LIMIT });
    if (existsSync(code)) return Number(readFileSync(code, "latin1"));
    if (!existsSync(begun)) {
      console.log("user-mode-linux cannot start a process on this machine, so memory cannot be limited");
      return 77;
    }
    console.log("user-mode-linux has not finished the tests");
    return 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
