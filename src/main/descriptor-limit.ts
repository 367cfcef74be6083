import { readFileSync } from "node:fs";

/** For what is open always, and for the gateway's own servers, which have 128 connections each. */
const RESERVED = 512;
/** The rest is for connections to backends and other services. */
const CLIENT_SHARE = 0.75;

/**
 * How many client connections each worker may have, so that they leave file descriptors for everything else; undefined when the
 * system does not tell its limit.
 */
export function clientConnectionsPerWorker(workers: number): number | undefined {
  const limit = openFilesLimit();
  if (limit === undefined) return undefined;
  // With a limit that is no larger, a quarter must do.
  const left = limit - Math.min(RESERVED, limit / 4);
  return Math.max(1, Math.floor((left * CLIENT_SHARE) / workers));
}

/** Of this process, which Node.js has raised as far as it may. */
function openFilesLimit(): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
