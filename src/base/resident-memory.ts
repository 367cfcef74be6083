import { kernelFile } from "./kernel-file.ts";

/** Bytes. */
interface ResidentMemory {
  readonly all: number;
  /** Pages shared with files, which the system can drop and read again. */
  readonly ofFiles: number;
}

/** Pages: size, resident, shared with files, …. Undefined outside Linux. */
const statm = openStatm();
const PAGE_BYTES = statm === undefined ? 0 : pageBytes(statm);

/**
 * The resident memory of this process. Unlike `process.memoryUsage()`, which throws when the process has run out of file
 * descriptors, it opens no file.
 */
export function residentMemory(): ResidentMemory {
  if (statm === undefined) return { all: process.memoryUsage.rss(), ofFiles: 0 };
  const [, all = 0, ofFiles = 0] = statm().split(" ").map(Number);
  return { all: all * PAGE_BYTES, ofFiles: ofFiles * PAGE_BYTES };
}

function openStatm(): (() => string) | undefined {
  try {
    return kernelFile("/proc/self/statm");
  } catch {
    return undefined;
  }
}

/** 4 KiB on most systems, 16 or 64 on some ARM systems. */
function pageBytes(read: () => string): number {
  return 2 ** Math.round(Math.log2(process.memoryUsage.rss() / Number(read().split(" ")[1])));
}
