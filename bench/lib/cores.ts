/** Assigns cores: the proxy under test gets its own, load generator and origin share the rest. */
import { readFileSync } from "node:fs";

export interface Cores {
  readonly count: number;
  /** One core, for a proxy with one worker. */
  readonly proxy: string;
  /** Two cores for a proxy with two workers, when enough others are left for the load (four in all). */
  readonly proxyPair: string | undefined;
  readonly load: string;
  readonly origin: string;
}

/** Reads the cores this process may use (proc(5), Cpus_allowed_list). */
export function findCores(): Cores {
  const list = /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0";
  const ids = list.split(",").flatMap(expandRange);
  const proxy = ids[0] ?? "0";
  const load = ids[1] ?? proxy;
  if (ids.length < 4) return { count: ids.length, proxy, proxyPair: undefined, load, origin: ids[2] ?? load };
  return {
    count: ids.length,
    proxy,
    proxyPair: ids.slice(0, 2).join(","),
    load: ids[2] ?? load,
    origin: ids[3] ?? load,
  };
}

function expandRange(range: string): string[] {
  const [first = 0, last = first] = range.split("-").map(Number);
  return Array.from({ length: last - first + 1 }, (_, index) => String(first + index));
}
