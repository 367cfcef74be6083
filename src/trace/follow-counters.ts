import { MAX_WATCHERS } from "./gate.ts";

/** Cells of one slot: which follower has it, what it has produced, and the characters on their way to the main thread. */
const [FOLLOWER, EVENTS, BEGUN, IN_TRANSIT] = [0, 1, 2, 3];
const CELLS = 4;
/** Characters of one follower that may be on their way; at 1,000 small requests per second, what half a second brings. */
const MAX_IN_TRANSIT = 4 * 1024 * 1024;

/** Events and requests of one follower in one thread, since it began. */
export interface Produced {
  readonly events: number;
  readonly begun: number;
}

/**
 * Shared memory of one worker and the main thread. It limits the messages that wait while the main thread is busy, because the queue between
 * threads has no limit. And it has the number of events and requests: when the worker dies, the main thread sees in it how many never
 * arrived. Counts are below 2^31: a follower ends after a million requests.
 */
export class FollowCounters {
  readonly memory: SharedArrayBuffer;
  readonly #cells: Int32Array;

  constructor(memory = new SharedArrayBuffer(MAX_WATCHERS * CELLS * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cells = new Int32Array(memory);
  }

  // ── the worker's side ──

  /** The counters of a follower that begins in this slot. What an earlier one has sent is still on its way. */
  begin(slot: number, follower: number): FollowerCounters {
    const base = slot * CELLS;
    const cells = this.#cells;
    for (const cell of [EVENTS, BEGUN]) Atomics.store(cells, base + cell, 0);
    Atomics.store(cells, base + FOLLOWER, follower);
    return {
      produced: (events) => void Atomics.add(cells, base + EVENTS, events),
      begun: () => void Atomics.add(cells, base + BEGUN, 1),
      send(length) {
        const room = Atomics.load(cells, base + IN_TRANSIT) < MAX_IN_TRANSIT;
        if (room) Atomics.add(cells, base + IN_TRANSIT, length);
        return room;
      },
    };
  }

  // ── the main thread's side ──

  /** A message of this many characters has arrived. */
  received(slot: number, length: number): void {
    Atomics.sub(this.#cells, slot * CELLS + IN_TRANSIT, length);
  }

  /** What the follower has produced; undefined: it never began in that thread. */
  producedBy(slot: number, follower: number): Produced | undefined {
    const [id, events = 0, begun = 0] = [FOLLOWER, EVENTS, BEGUN].map((cell) =>
      Atomics.load(this.#cells, slot * CELLS + cell),
    );
    return id === follower ? { events, begun } : undefined;
  }
}

/** The counters of one follower, for the thread that follows. */
export interface FollowerCounters {
  produced(events: number): void;
  /** A request. */
  begun(): void;
  /** Whether a message may be sent; if so, its characters are on their way from now on. */
  send(length: number): boolean;
}
