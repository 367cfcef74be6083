/** The frame of a suite: a command that ends with 0 when every case passed, 1 when one failed, 77 when its tool is missing. */
import { messageOf } from "../../../src/base/errors.ts";
import { ToolMissing } from "./tools.ts";

/** The exit code by which test drivers such as automake know a test that could not run. */
const NOT_RUN = 77;

/** Runs a suite that prints its own summary; `run` returns the names of the failed cases. */
export async function runSuite(name: string, run: () => Promise<readonly string[]>): Promise<void> {
  const start = performance.now();
  try {
    const failed = await run();
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    for (const each of failed) process.stdout.write(`${name}: failed: ${each}\n`);
    process.stdout.write(
      `${name}: ${failed.length === 0 ? "all passed" : `${failed.length} failed`} in ${seconds} s\n`,
    );
    process.exitCode = failed.length === 0 ? 0 : 1;
  } catch (error) {
    process.stdout.write(`${name}: not run: ${messageOf(error)}\n`);
    process.exitCode = error instanceof ToolMissing ? NOT_RUN : 1;
  }
}
