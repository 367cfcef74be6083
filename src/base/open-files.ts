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

/** How many it has open; undefined outside Linux, or if no descriptor is left to count them. */
export async function openFiles(): Promise<number | undefined> {
  try {
    // Since Linux 6.2 the size is their number; before, it was 0. Listing them takes a descriptor.
    return statSync("/proc/self/fd").size || (await readdir("/proc/self/fd")).length;
  } catch {
    return undefined;
  }
}
