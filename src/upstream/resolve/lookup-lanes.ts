/** Milliseconds after which the slow lane is free again if it was not given back: the thread that took it has died. */
const LANE_MS = 120_000;
/** The same for the slot of a name, for which requests wait. With usual settings, a lookup fails after 10 s. */
const BUSY_MS = 20_000;
/** Milliseconds for which the speed of the last lookup of a name is remembered. */
const MEMORY_MS = 300_000;
/** Slots of names. */
const NAMES = 1024;

/** States of a name. `BUSY`: a thread is looking it up. `FAST`: the last lookup has succeeded, or has failed fast. */
const UNKNOWN = 0n;
const BUSY = 1n;
const FAST = 2n;
const SLOW = 3n;

/**
 * Whether a thread may look up a name. `own` and `slow`: yes, and `leave` must follow. `busy`: no, another thread is looking it up.
 * `full`: no, its last lookup has failed slowly, and the slow lane is taken.
 */
type Lane = "own" | "slow" | "busy" | "full";

/**
 * Limits how many lookups wait for name servers that do not respond. All threads share the threads of libuv, two of which may look
 * names up, and such a lookup occupies one for seconds: if every worker looked the name up, the lookups of all other names would
 * be delayed, even those of the hosts file. So until a name is known to be fast, one thread at a time looks it up, and names whose
 * last lookup has failed slowly share the slow lane, one slot for the whole process.
 */
export class LookupLanes {
  readonly memory: SharedArrayBuffer;
  /**
   * First the slow lane: the time until which it is taken. Then the slots, in which names stand by their hash: the time until which
   * the state holds (42 bits), a second hash (20 bits), and the state (2 bits). Times are milliseconds.
   */
  readonly #words: BigUint64Array;
  readonly #now: () => bigint;

  /** `memory`: of another thread. `now`: milliseconds of a clock that all threads share. */
  constructor(
    memory = new SharedArrayBuffer((1 + NAMES) * BigUint64Array.BYTES_PER_ELEMENT),
    now: () => bigint = monotonic,
  ) {
    this.memory = memory;
    this.#words = new BigUint64Array(memory);
    this.#now = now;
  }

  /** `renewal`: former addresses of `host` are in use, so its lookup can be left to another thread. */
  enter(host: string, renewal: boolean): Lane {
    const now = this.#now();
    const { slot, print, word } = this.#find(host);
    const state = stateOf(word, print, now);
    if (state === SLOW) return this.#takeSlowLane(now) ? "slow" : "full";
    if (state === BUSY) return "busy";
    // Several workers may look the name up for the first time.
    if (state === FAST && !renewal) return "own";
    // Another name has the slot. Neither waits for the other.
    if (state === undefined) return "own";
    return this.#replace(slot, word, wordOf(now + BigInt(BUSY_MS), print, BUSY)) ? "own" : "busy";
  }

  /** Ends a lookup. `slow`: it has failed after a long time. */
  leave(host: string, lane: Lane, slow: boolean): void {
    const now = this.#now();
    const { slot, print, word } = this.#find(host);
    if (stateOf(word, print, now) !== undefined)
      Atomics.store(this.#words, slot, wordOf(now + BigInt(MEMORY_MS), print, slow ? SLOW : FAST));
    if (lane === "slow") Atomics.store(this.#words, 0, 0n);
  }

  #takeSlowLane(now: bigint): boolean {
    const until = Atomics.load(this.#words, 0);
    return until <= now && this.#replace(0, until, now + BigInt(LANE_MS));
  }

  #replace(slot: number, expected: bigint, word: bigint): boolean {
    return Atomics.compareExchange(this.#words, slot, expected, word) === expected;
  }

  #find(host: string): { readonly slot: number; readonly print: bigint; readonly word: bigint } {
    // FNV-1a.
    let hash = 0x811c9dc5;
    for (let i = 0; i < host.length; i++) hash = Math.imul(hash ^ host.charCodeAt(i), 0x01000193);
    const slot = 1 + ((hash >>> 0) % NAMES);
    return { slot, print: BigInt(hash >>> 12), word: Atomics.load(this.#words, slot) };
  }
}

function wordOf(until: bigint, print: bigint, state: bigint): bigint {
  return (until << 22n) | (print << 2n) | state;
}

/** undefined: the word is in use by another name. */
function stateOf(word: bigint, print: bigint, now: bigint): bigint | undefined {
  if (word >> 22n <= now) return UNKNOWN;
  if (((word >> 2n) & 0xfffffn) === print) return word & 3n;
  return (word & 3n) === FAST ? UNKNOWN : undefined;
}

function monotonic(): bigint {
  return process.hrtime.bigint() / 1_000_000n;
}
