import { openSync, readSync } from "node:fs";

/** Larger than what `/proc` and cgroups say of one process. */
const BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Returns a function that reads a file of the kernel, such as one in `/proc`, as it is at the moment. The file stays open: when the
 * process has run out of descriptors, no other file can be opened. Throws the system's error, and so does the function.
 */
export function kernelFile(path: string): () => string {
  const descriptor = openSync(path, "r");
  return () => BUFFER.toString("latin1", 0, readSync(descriptor, BUFFER, 0, BUFFER.length, 0));
}
