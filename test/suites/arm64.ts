/**
 * npm run arm64 [-- file…]
 * Runs the tests of the data plane, or those named, with Node.js for arm64 under qemu: the code that V8 makes for that processor, with its
 * atomic instructions, among threads. It takes hours, because qemu takes twenty times as long as a processor. qemu keeps the order of stores
 * of this machine, so it shows that the code works, not that its barriers are needed or enough; decisions 4 and 67 argue that.
 */
import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { appRoot } from "../../src/base/app-root.ts";
import { runSuite } from "./lib/suite.ts";
import { nodeForArm64 } from "./lib/tools.ts";

/** The rooms whose code runs in workers. */
const ROOMS = "base,net,cel,trace,telemetry,recorder,tls,http,upstream,policies,proxy,worker";
/** qemu reports a process without memory. */
const WITHOUT = ["src/base/resident-memory.test.ts", "src/worker/memory-in-use.test.ts"];
/** Milliseconds for one file. */
const LIMIT = 900_000;

await runSuite("arm64", async () => {
  const [command = "", ...node] = nodeForArm64();
  const folder = mkdtempSync(join(tmpdir(), "tracegate-arm64-"));
  // Tests start other processes as they were started, which must be by qemu.
  const program = join(folder, "node");
  writeFileSync(program, `#!/bin/sh\nexec '${[command, ...node].join("' '")}' "$@"\n`, { mode: 0o755 });
  const asProgram = `data:text/javascript,process.execPath = ${JSON.stringify(program)}`;
  const named = process.argv.slice(2);
  const all = globSync(`src/{${ROOMS}}/**/*.test.ts`, { cwd: appRoot, exclude: WITHOUT });
  const files = named.length > 0 ? named : all.sort();
  const failed = files.filter((file) => {
    process.stdout.write(`arm64: ${file}\n`);
    const { status } = spawnSync(program, ["--import", asProgram, file], {
      cwd: appRoot,
      stdio: "inherit",
      timeout: LIMIT,
    });
    return status !== 0;
  });
  rmSync(folder, { recursive: true });
  return failed;
});
