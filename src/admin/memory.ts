import type { ThreadMemory } from "../telemetry/thread-memory.ts";
import { type CgroupMemory, readCgroupMemory } from "./memory/cgroup.ts";
import { readSmaps, type SmapsMemory } from "./memory/smaps.ts";

/** The body of `GET /memory` (reference 4.5, where Node has the data); bytes. */
export interface MemoryReport {
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
  /** Null where the system does not tell, such as outside Linux. */
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
