import type { Logger } from "../base/log.ts";
import type { MemoryPressure } from "../proxy/overload/memory-pressure.ts";

/** Milliseconds between samples, which cost 20 µs, in a container 60 µs. */
const SAMPLE_MS = 50;
/**
 * From this share of the threshold on, workers are frugal and collect garbage, because V8 knows the limit of its heap but not that of the
 * container.
 */
const NEAR = 0.9;
/** Milliseconds between collections; doubled while they do not help. */
const COLLECT_EVERY_MS = 5_000;
const COLLECT_EVERY_MAX_MS = 60_000;
/** Memory has to fall to this share of the threshold before the pressure ends. */
const RELIEVED = 0.95;
/**
 * Pressure begins only while workers, and the system for their sockets, hold at least this share of what the limit leaves beyond the
 * needs of the process at rest, and it ends when they hold less. Freed memory may stay resident, because the allocator keeps it
 * for the next use: turning work away would not return it, so the pressure would never end. Of the memory for slow clients inside TLS,
 * a third counts as held; the rest belongs to OpenSSL and libuv.
 */
const HELD = 0.2;
const RELEASED = 0.15;

/** All in bytes. */
export interface MemoryLimit {
  readonly limit: number;
  /** Share of the limit that may be used before new work is turned away. */
  readonly share: number;
  /** What counts against the limit; see memory-in-use.ts. */
  used(): number;
  /** The part of it that the process itself uses. The rest is the system's, such as socket buffers. */
  resident(): number;
}

/** Watches the memory of the process in the main thread, and puts all workers under pressure when little is left. */
export class MemoryWatch {
  readonly #pressure: MemoryPressure;
  readonly #limit: number;
  readonly #threshold: number;
  readonly #used: () => number;
  readonly #resident: () => number;
  readonly #log: Logger;
  /** Milliseconds. */
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  /** Memory in use at rest, and how much of it was held: each worker has 25 MiB of code and data. Known when all have reported. */
  #atRest: { readonly used: number; readonly held: number } | undefined;
  #collectAt = 0;
  #collectEvery = COLLECT_EVERY_MS;
  #since = 0;

  /** `now` in milliseconds. */
  constructor(
    pressure: MemoryPressure,
    { limit, share, used, resident }: MemoryLimit,
    log: Logger,
    now: () => number = () => performance.now(),
  ) {
    this.#pressure = pressure;
    this.#limit = limit;
    this.#threshold = limit * share;
    this.#used = used;
    this.#resident = resident;
    this.#log = log;
    this.#now = now;
    this.#timer = setInterval(() => this.sample(), SAMPLE_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Called by the timer. */
  sample(): void {
    const used = this.#used();
    const now = this.#now();
    const pressure = this.#pressure;
    const { active, held } = pressure;
    const near = used >= this.#threshold * NEAR;
    if (!near || active) this.#collectEvery = COLLECT_EVERY_MS;
    if (near && now >= this.#collectAt) {
      pressure.askToCollect();
      this.#collectAt = now + this.#collectEvery;
      this.#collectEvery = Math.min(COLLECT_EVERY_MAX_MS, this.#collectEvery * 2);
    }
    const share = near || active || this.#atRest === undefined ? this.#shareHeld(used, held) : 0;
    const short = active
      ? used >= this.#threshold * RELIEVED && share >= RELEASED
      : used >= this.#threshold && share >= HELD;
    pressure.near = near && share >= RELEASED;
    if (short === active) return;
    pressure.active = short;
    const fields = { used: mebibytes(used), held: mebibytes(held), limit: mebibytes(this.#limit) };
    if (short) {
      this.#since = now;
      this.#log.warn("memory is almost full: new work is turned away", fields);
    } else this.#log.info("memory is available again", { ...fields, lasted: `${Math.round(now - this.#since)}ms` });
  }

  /** The share that workers and the system hold of what they can hold, both without the needs at rest. */
  #shareHeld(used: number, byWorkers: number): number {
    const held = byWorkers + Math.max(0, used - this.#resident());
    if (this.#atRest === undefined) {
      if (!this.#pressure.allReported) return 0;
      this.#atRest = { used, held };
      if (used >= this.#threshold * NEAR)
        this.#log.warn("the memory limit leaves little for requests: the gateway needs most of it at rest", {
          used: mebibytes(used),
          limit: mebibytes(this.#limit),
        });
    }
    const room = this.#limit - this.#atRest.used;
    return room > 0 ? (held - this.#atRest.held) / room : 1;
  }
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)}MiB`;
}
