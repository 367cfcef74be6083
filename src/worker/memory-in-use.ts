/** How much memory is in use against a limit, without pages that the system can read from files again. */
import { existsSync, readFileSync } from "node:fs";
import { kernelFile } from "../base/kernel-file.ts";
import { residentMemory } from "../base/resident-memory.ts";

const ROOT = "/sys/fs/cgroup";

/** Memory of the process, without the mapped parts of Node's binary: these 60 MiB are resident, but are released first when memory is short. */
export function residentBytes(): number {
  const { all, ofFiles } = residentMemory();
  return all - ofFiles;
}

/**
 * Returns a function that measures what the container of this process uses (cgroups of either version), as the system counts it
 * before it kills a process: including kernel memory, in version 2 also socket buffers, and the container's other processes. Outside a
 * container, it measures the process. `root`, `own`: the mount point of cgroups, and the content of `/proc/self/cgroup`.
 */
export function containerBytes(root = ROOT, own = readText("/proc/self/cgroup")): () => number {
  for (const folder of foldersOf(root, own)) {
    const usage = [`${folder}/memory.current`, `${folder}/memory.usage_in_bytes`].find((file) => existsSync(file));
    if (usage === undefined) continue;
    try {
      const [all, stat] = [kernelFile(usage), kernelFile(`${folder}/memory.stat`)];
      return () => used(all, stat);
    } catch {
      return residentBytes;
    }
  }
  return residentBytes;
}

/** In a container, the path of the process is often that of the host, and its own folder is the root. */
function foldersOf(root: string, own: string): string[] {
  const path = (pattern: RegExp): string => pattern.exec(own)?.[1]?.replace(/\/$/, "") ?? "";
  return [
    `${root}/memory${path(/^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m)}`,
    `${root}/memory`,
    `${root}${path(/^0::(.*)$/m)}`,
    root,
  ];
}

function used(all: () => string, stat: () => string): number {
  try {
    return Number(all()) - reclaimable(stat());
  } catch {
    return residentBytes();
  }
}

/** Pages of files, and what the kernel remembers about files. Version 1 has the sums over folders below in `total_`. */
function reclaimable(stat: string): number {
  const sums = new Map<string, number>();
  for (const line of stat.split("\n")) {
    const space = line.indexOf(" ");
    sums.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  const of = (name: string): number => sums.get(`total_${name}`) ?? sums.get(name) ?? 0;
  return of("active_file") + of("inactive_file") + of("slab_reclaimable");
}

function readText(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}
