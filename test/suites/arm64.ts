/**
 * npm run arm64 [-- file…]
 * Runs the tests of the flight recorder, or those named, with Node.js for arm64 under qemu: the code that V8 makes for that processor, with
 * its atomic instructions, among threads. qemu keeps the order of stores of this machine, so it shows that the code works, not that its
 * barriers are needed or enough; decision 67 argues that.
 */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { appRoot } from "../../src/base/app-root.ts";
import { runSuite } from "./lib/suite.ts";
import { nodeForArm64 } from "./lib/tools.ts";

/** None of these starts another process, which would not run under qemu. */
const FILES = "src/recorder/*.test.ts";
/** Milliseconds for one file: qemu takes twenty times as long as a processor. */
const LIMIT = 900_000;

await runSuite("arm64", async () => {
  const [command = "", ...node] = nodeForArm64();
  const named = process.argv.slice(2);
  const files = named.length > 0 ? named : globSync(FILES, { cwd: appRoot }).sort();
  return files.filter((file) => {
    process.stdout.write(`arm64: ${file}\n`);
    const { status } = spawnSync(command, [...node, file], { cwd: appRoot, stdio: "inherit", timeout: LIMIT });
    return status !== 0;
  });
});
