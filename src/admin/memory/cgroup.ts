import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Memory of the container (cgroup v2), in bytes; counters of faults and working-set events as they are. */
export interface CgroupMemory {
  readonly usage: number;
  /** Usage without the file cache that the kernel would drop first: what an out-of-memory decision looks at. */
  readonly working_set: number;
  /** Null when there is none. */
  readonly limit: number | null;
  /** The lines of memory.stat: `anon`, `file`, `kernel_stack`, `slab`, `pgfault`, … */
  readonly [stat: string]: number | null;
}

/** Null where the process is not in a cgroup v2 whose files it can read. */
export async function readCgroupMemory(): Promise<CgroupMemory | null> {
  try {
    const path = /^0::(\/.*)$/m.exec(await readFile("/proc/self/cgroup", "utf8"))?.[1];
    if (path === undefined) return null;
    const read = (file: string): Promise<string> => readFile(join("/sys/fs/cgroup", path, file), "utf8");
    return parseCgroupMemory(await read("memory.current"), await read("memory.max"), await read("memory.stat"));
  } catch {
    return null;
  }
}

/** From the texts of memory.current, memory.max and memory.stat (kernel documentation, cgroup-v2). */
export function parseCgroupMemory(current: string, max: string, stat: string): CgroupMemory {
  const stats: Record<string, number> = {};
  for (const [, name = "", value] of stat.matchAll(/^(\w+) (\d+)$/gm)) stats[name] = Number(value);
  const usage = Number(current);
  return {
    ...stats,
    usage,
    working_set: Math.max(0, usage - (stats.inactive_file ?? 0)),
    limit: max.trim() === "max" ? null : Number(max),
  };
}
