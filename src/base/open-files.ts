import { readFileSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";

/** The most files and sockets that this process can have open; undefined outside Linux. Node.js raises it to the hard limit at the start. */
export function openFilesLimit(): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}

/** How many it has open; undefined outside Linux, and where none is left to find it out. */
export async function openFiles(): Promise<number | undefined> {
  try {
    // Linux counts them since 6.2; before, the size is 0. To list them takes a descriptor.
    return statSync("/proc/self/fd").size || (await readdir("/proc/self/fd")).length;
  } catch {
    return undefined;
  }
}
