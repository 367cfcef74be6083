import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

/** Memory of the current thread as V8 reports it, in bytes; plain data, so it can cross threads. */
export interface ThreadMemory {
  readonly heap_used: number;
  readonly heap_committed: number;
  readonly heap_limit: number;
  readonly malloced: number;
  readonly malloced_peak: number;
  /** Memory outside the heap that heap objects own, mostly buffers. */
  readonly external: number;
  readonly array_buffers: number;
  readonly native_contexts: number;
  readonly detached_contexts: number;
  readonly spaces: readonly {
    readonly name: string;
    readonly used: number;
    readonly available: number;
    readonly committed: number;
  }[];
}

/** Reads the memory of the current thread; costs microseconds and forces no collection. */
export function readThreadMemory(): ThreadMemory {
  const heap = getHeapStatistics();
  return {
    heap_used: heap.used_heap_size,
    heap_committed: heap.total_heap_size,
    heap_limit: heap.heap_size_limit,
    malloced: heap.malloced_memory,
    malloced_peak: heap.peak_malloced_memory,
    external: heap.external_memory,
    array_buffers: arrayBuffers(),
    native_contexts: heap.number_of_native_contexts,
    detached_contexts: heap.number_of_detached_contexts,
    spaces: getHeapSpaceStatistics().map((space) => ({
      name: space.space_name,
      used: space.space_used_size,
      available: space.space_available_size,
      committed: space.physical_space_size,
    })),
  };
}

function arrayBuffers(): number {
  try {
    return process.memoryUsage().arrayBuffers;
  } catch {
    // The process has run out of file descriptors, and Node.js reads other values of the same call from a file.
    return 0;
  }
}
