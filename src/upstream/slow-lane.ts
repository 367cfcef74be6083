/** Milliseconds after which a taken slot is free again: the thread that took it has died. */
const LEASE_MS = 120_000;

/**
 * One slot for the whole process, for names whose last lookup has failed after a long time. All threads share the threads of libuv,
 * two of which may look names up: without this, a name whose name servers do not respond, looked up by every worker, would delay
 * the lookups of all other names, even those of the hosts file.
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

  /** False while another lookup has the slot. */
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
