import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ThreadMemory } from "../telemetry/thread-memory.ts";

/** The body of `GET /memory` (reference 4.5, where Node has the data); bytes. */
interface MemoryReport {
  readonly captured_at_unix_ms: number;
  /** `live`: counters of V8 and the system as they are, no collection forced. */
  readonly capture_mode: "live";
  readonly process: {
    readonly resident_bytes: number;
    readonly heap_used_bytes: number;
    readonly heap_committed_bytes: number;
    readonly external_bytes: number;
    readonly array_buffers_bytes: number;
  };
  readonly allocator: {
    readonly kind: "v8";
    /** Sums over the threads. */
    readonly comparable: {
      readonly allocated_bytes: number;
      readonly active_bytes: number;
      readonly resident_bytes: number;
      readonly committed_bytes: number;
    };
    readonly specific: { readonly kind: "v8"; readonly threads: readonly NamedThreadMemory[] };
  };
  /** Null if the system does not report it, as outside Linux. */
  readonly cgroup: CgroupMemory | null;
  readonly smaps: SmapsMemory | null;
}

export interface NamedThreadMemory extends ThreadMemory {
  /** Such as `main` or `worker-0`. */
  readonly thread: string;
}

/** The report of a process from what each of its threads read with `readThreadMemory`. */
export async function memoryReport(threads: readonly NamedThreadMemory[]): Promise<MemoryReport> {
  const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
  const [cgroup, smaps] = await Promise.all([readCgroupMemory(), readSmaps()]);
  const total = (read: (thread: ThreadMemory) => number): number => threads.reduce((sum, each) => sum + read(each), 0);
  const committed = total((thread) => thread.heap_committed + thread.external);
  return {
    captured_at_unix_ms: Date.now(),
    capture_mode: "live",
    process: {
      resident_bytes: rss,
      heap_used_bytes: heapUsed,
      heap_committed_bytes: heapTotal,
      external_bytes: external,
      array_buffers_bytes: arrayBuffers,
    },
    allocator: {
      kind: "v8",
      comparable: {
        allocated_bytes: total((thread) => thread.heap_used + thread.external),
        active_bytes: committed,
        resident_bytes: rss,
        committed_bytes: committed,
      },
      specific: { kind: "v8", threads },
    },
    cgroup,
    smaps,
  };
}

/** Memory of the container (cgroup v2), in bytes; counters of faults and working-set events as they are. */
interface CgroupMemory {
  readonly usage: number;
  /** Usage without the file cache that the kernel would drop first: what an out-of-memory decision looks at. */
  readonly working_set: number;
  /** Null without a limit. */
  readonly limit: number | null;
  /** The lines of memory.stat: `anon`, `file`, `kernel_stack`, `slab`, `pgfault`, … */
  readonly [stat: string]: number | null;
}

/** Null where the process is not in a cgroup v2 whose files it can read. */
async function readCgroupMemory(): Promise<CgroupMemory | null> {
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

/**
 * Memory of the process by how its pages are used, in bytes: `rss`, `pss`, `private_dirty`, `anon_huge_pages`, … The
 * kernel's names in snake case; which there are depends on the kernel.
 */
type SmapsMemory = Readonly<Record<string, number>>;

/** Null where /proc/self/smaps_rollup cannot be read (outside Linux, kernels before 4.14, some sandboxes). */
async function readSmaps(): Promise<SmapsMemory | null> {
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
