import { readFile } from "node:fs/promises";

/**
 * Memory of the process by how its pages are used, in bytes: `rss`, `pss`, `private_dirty`, `anon_huge_pages`, … The
 * kernel's names in snake case; which there are depends on the kernel.
 */
export type SmapsMemory = Readonly<Record<string, number>>;

/** Null where /proc/self/smaps_rollup cannot be read (outside Linux, kernels before 4.14, some sandboxes). */
export async function readSmaps(): Promise<SmapsMemory | null> {
  try {
    return parseSmaps(await readFile("/proc/self/smaps_rollup", "utf8"));
  } catch {
    return null;
  }
}

/** Parses the text of smaps_rollup (proc_pid_smaps(5)), which counts in KiB. */
export function parseSmaps(text: string): SmapsMemory {
  const fields = text.matchAll(/^(\w+):\s+(\d+) kB$/gm);
  return Object.fromEntries(Array.from(fields, ([, name = "", kib]) => [snakeCase(name), Number(kib) * 1024]));
}

function snakeCase(name: string): string {
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
}
