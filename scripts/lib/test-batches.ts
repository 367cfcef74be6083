import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { appRoot } from "../../src/base/app-root.ts";

/** Files in a process. With more, little would be saved, and cores would be without work at the end of a run. */
const BATCH = 32;

/** Has the files that take longest, those that drive a browser. */
const LONGEST = "test/e2e/admin/";

/** Files that need a process of their own, and why. */
const ALONE: ReadonlyMap<string, string> = new Map([
  ["src/base/resident-memory.test.ts", "measures the memory of its process"],
  ["test/e2e/http/slow-readers.test.ts", "measures the buffers of its process, after a collection of its whole heap"],
  ["src/worker/memory-in-use.test.ts", "measures the memory of its process"],
]);

/**
 * Writes into `folder` the modules that a run executes, each in a process: a module imports a batch of test files. Files that
 * have a process each spend half of their CPU on loading what they test, which a batch does once: it has neighbours, because they
 * load the same. A file becomes a suite of its name, so its hooks apply to it alone.
 */
export function writeBatches(files: readonly string[], folder: string): string[] {
  const alone = files.filter((file) => ALONE.has(file)).map((file) => [file]);
  const others = files.filter((file) => !ALONE.has(file)).sort();
  const count = Math.ceil(others.length / BATCH);
  const together = Array.from({ length: count }, (_, index) => others.slice(index * BATCH, (index + 1) * BATCH));
  // The longest first, then those of test/, which wait for processes: at the end of a run, no core may wait for one long batch.
  const isLongest = (batch: readonly string[]): boolean => batch.some((file) => file.startsWith(LONGEST));
  const rest = [...together, ...alone].reverse();
  const ordered = [...rest.filter(isLongest), ...rest.filter((batch) => !isLongest(batch))];
  return ordered.map((batch, index) => {
    const suites = batch.map((file) => {
      const path = JSON.stringify(resolve(appRoot, file));
      return `describe(${JSON.stringify(file)}, async () => { await import(${path}); });\n`;
    });
    const entry = join(folder, `batch-${index}.mjs`);
    writeFileSync(entry, `import { describe } from "node:test";\n${suites.join("")}`);
    return entry;
  });
}
