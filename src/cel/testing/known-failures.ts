import { readFileSync } from "node:fs";

/**
 * The cases that are known to fail, with their reasons. The file names a case a line; a line that begins with `#` is the reason
 * of those below it.
 */
export function knownFailures(): readonly (readonly [name: string, reason: string])[] {
  let reason = "";
  return readFileSync(new URL("known-failures.txt", import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => {
      if (!line.startsWith("#")) return [[line, reason] as const];
      reason = line.slice(1).trim();
      return [];
    });
}
