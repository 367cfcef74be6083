import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The checkout's folder, with a slash at its end. */
export const root: string = fileURLToPath(new URL("../../", import.meta.url));

/** Every file that belongs to the project: tracked, or new and not ignored; paths relative to `root`, sorted. */
export function projectFiles(): string[] {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 << 20,
  });
  return [...new Set(listed.split("\0"))].filter((path) => path !== "" && existsSync(root + path)).sort();
}

/** Text of a project file; `path` is relative to `root`. */
export function readText(path: string): string {
  return readFileSync(root + path, "utf8");
}
