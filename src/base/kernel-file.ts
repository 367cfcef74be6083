import { openSync, readSync } from "node:fs";

/** Larger than any file in `/proc` or of cgroups about one process. */
const BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Returns a function that reads a file of the kernel, such as one in `/proc`, with its current content. The file stays open: when
 * the process has run out of descriptors, no other file can be opened. Throws the system's error, and so does the function.
 */
export function kernelFile(path: string): () => string {
  const descriptor = openSync(path, "r");
  return () => BUFFER.toString("latin1", 0, readSync(descriptor, BUFFER, 0, BUFFER.length, 0));
}
