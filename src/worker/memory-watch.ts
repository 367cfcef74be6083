import { readFileSync } from "node:fs";
import type { Logger } from "../base/log.ts";
import type { MemoryPressure } from "../proxy/overload/memory-pressure.ts";

/** Milliseconds between samples, which cost 20 µs. */
const SAMPLE_MS = 50;
/** From this share of the threshold on, workers collect garbage: V8 knows its heap's limit, not that of the container. */
const COLLECT_FROM = 0.9;
/** Milliseconds between collections; doubled while they do not help. */
const COLLECT_EVERY_MS = 5_000;
const COLLECT_EVERY_MAX_MS = 60_000;
/** Resident memory has to fall to this share of the threshold before the pressure ends. */
const RELIEVED = 0.95;
/**
 * Pressure begins only while workers hold this share of the limit, and ends when they hold less. Memory that was freed may stay
 * resident, where the allocator keeps it for the next use: turning work away would not bring it back, and would never end.
 */
const HELD = 0.4;
const RELEASED = 0.3;

/** What the watch reads; replaced in tests. */
export interface MemorySystem {
  /** Milliseconds. */
  now(): number;
  /** Resident memory of the process in bytes, without what the system can read from files again. */
  resident(): number;
}

const PAGE_BYTES = 4096;

const PROCESS: MemorySystem = { now: () => performance.now(), resident };

/** The mapped parts of Node's own binary, 60 MiB, count as resident, but are the first to go when memory is short. */
function resident(): number {
  try {
    // Pages: size, resident, shared with files, …
    const [, all = 0, shared = 0] = readFileSync("/proc/self/statm", "latin1").split(" ").map(Number);
    return (all - shared) * PAGE_BYTES;
  } catch {
    return process.memoryUsage.rss();
  }
}

/** Watches the memory of the process in the main thread, and puts all workers under pressure when little is left. */
export class MemoryWatch {
  readonly #pressure: MemoryPressure;
  readonly #limit: number;
  readonly #threshold: number;
  readonly #log: Logger;
  readonly #system: MemorySystem;
  readonly #timer: NodeJS.Timeout;
  #collectAt = 0;
  #collectEvery = COLLECT_EVERY_MS;
  #since = 0;

  /** `limit` in bytes; `share` of it that may be used before new work is turned away. */
  constructor(
    pressure: MemoryPressure,
    { limit, share }: { readonly limit: number; readonly share: number },
    log: Logger,
    system = PROCESS,
  ) {
    this.#pressure = pressure;
    this.#limit = limit;
    this.#threshold = limit * share;
    this.#log = log;
    this.#system = system;
    this.#timer = setInterval(() => this.sample(), SAMPLE_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Called by the timer. */
  sample(): void {
    const resident = this.#system.resident();
    const now = this.#system.now();
    const { active, held } = this.#pressure;
    const ample = resident < this.#threshold * COLLECT_FROM;
    if (ample || active) this.#collectEvery = COLLECT_EVERY_MS;
    if (!ample && now >= this.#collectAt) {
      this.#pressure.askToCollect();
      this.#collectAt = now + this.#collectEvery;
      this.#collectEvery = Math.min(COLLECT_EVERY_MAX_MS, this.#collectEvery * 2);
    }
    const short = active
      ? resident >= this.#threshold * RELIEVED && held >= this.#limit * RELEASED
      : resident >= this.#threshold && held >= this.#limit * HELD;
    if (short === active) return;
    this.#pressure.active = short;
    const fields = { resident: mebibytes(resident), held: mebibytes(held), limit: mebibytes(this.#limit) };
    if (short) {
      this.#since = now;
      this.#log.warn("memory is almost full: new work is turned away", fields);
    } else this.#log.info("memory is available again", { ...fields, lasted: `${Math.round(now - this.#since)}ms` });
  }
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)}MiB`;
}
