/** A place that was taken longer ago than this, in milliseconds, is free again: the thread that took it has died. */
const LEASE_MS = 120_000;

/**
 * One place for the whole process, for lookups of names whose last lookup has failed after a long time. All threads share the
 * threads of libuv, two of which may look names up: without this, a name whose name servers do not answer, asked for by every worker,
 * would hold up the lookups of all other names, those of the hosts file too.
 */
export class SlowLane {
  readonly memory: SharedArrayBuffer;
  /** Milliseconds of the system's monotonic clock; 0: free. */
  readonly #takenUntil: BigInt64Array;
  readonly #now: () => bigint;

  /** `memory`: of another thread. `now`: milliseconds of a clock that all threads share. */
  constructor(memory = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT), now: () => bigint = monotonic) {
    this.memory = memory;
    this.#takenUntil = new BigInt64Array(memory);
    this.#now = now;
  }

  /** False while another lookup has the place. */
  take(): boolean {
    const now = this.#now();
    const until = Atomics.load(this.#takenUntil, 0);
    if (until > now) return false;
    return Atomics.compareExchange(this.#takenUntil, 0, until, now + BigInt(LEASE_MS)) === until;
  }

  give(): void {
    Atomics.store(this.#takenUntil, 0, 0n);
  }
}

function monotonic(): bigint {
  return process.hrtime.bigint() / 1_000_000n;
}
