import { readFileSync } from "node:fs";

/** File descriptors for files that are always open, and for the gateway's own servers, with 128 connections each. */
const RESERVED = 512;
/** The rest is for connections to backends and callouts. */
const CLIENT_SHARE = 0.75;

/**
 * The limit of client connections per worker that leaves file descriptors for everything else: without one, a flood of clients
 * would use up all descriptors, and requests would fail because no backend connection can be opened. Undefined if the system
 * does not report its limit.
 */
export function clientConnectionsPerWorker(workers: number): number | undefined {
  const limit = openFilesLimit();
  if (limit === undefined) return undefined;
  // With a small limit, a quarter is reserved.
  const left = limit - Math.min(RESERVED, limit / 4);
  return Math.max(1, Math.floor((left * CLIENT_SHARE) / workers));
}

/** The soft limit of this process, which Node.js raises to the hard limit when it starts. */
function openFilesLimit(): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
