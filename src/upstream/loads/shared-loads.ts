import { createHmac, randomBytes } from "node:crypto";

/** Endpoints that the table has room for. The system allocates its pages as they are used: an endpoint takes one cache line with up to 13 workers. */
const ROWS = 16_384;
/** Rows in which an endpoint may be, from the one of its hash on. */
const WINDOW = 32;
/** Words of the header: the number of workers, the lock, the secret of the hash, and 1 once the table had no room. */
const WORKERS = 0;
const LOCK = 1;
const SECRET = 2;
const SECRET_WORDS = 4;
const WAS_FULL = SECRET + SECRET_WORDS;
const HEADER = 16;
/** Words of a row: the hash of the endpoint, then a cell for each worker. */
const HASH_WORDS = 3;
const CELLS = HASH_WORDS;
/** Rows begin at a cache line, so that workers with different endpoints do not slow each other down. */
const LINE = 16;
/** Attempts before a thread sleeps on the lock. The holder needs about a microsecond unless it is descheduled. */
const SPINS = 200;
const SLEEP_MS = 1;

type Hash = readonly number[];

/**
 * How many calls are in progress at an endpoint, over all workers: in a table that they share, so that a balancer sees the calls of the
 * others, and a limit holds for the process. Requests that wait for a connection, and retried ones, have rows of their own.
 *
 * A row is found by a keyed hash of the endpoint's key, so that no configuration can aim at the row of another one. It has a cell for each
 * worker: 0, or 1 and the calls of that worker. Only that worker writes it, so whenever a worker dies, emptying its cells is all there is to
 * do; a sum beside the cells would be wrong if it died between two steps. A row whose cells are all 0 is free. Only claims need the lock.
 */
export class SharedLoads {
  readonly #memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #workers: number;
  readonly #stride: number;
  readonly #rows: number;
  readonly #worker: number;
  readonly #onFull: () => void;

  /** Memory for this many workers; `rows` is for tests. */
  static memoryFor(workers: number, rows = ROWS): SharedArrayBuffer {
    const memory = new SharedArrayBuffer(4 * (HEADER + rows * strideFor(workers)));
    const words = new Int32Array(memory);
    words[WORKERS] = workers;
    const secret = randomBytes(4 * SECRET_WORDS);
    for (let i = 0; i < SECRET_WORDS; i++) words[SECRET + i] = secret.readInt32LE(4 * i);
    return memory;
  }

  /**
   * `worker`: the index of the thread, whose cells it writes. The main thread, which only calls `forget`, may leave it out. `onFull` is called
   * once, in one of the threads, when the table has no room for the first time.
   */
  constructor(memory: SharedArrayBuffer, worker = 0, onFull: () => void = () => {}) {
    this.#onFull = onFull;
    this.#memory = memory;
    this.#words = new Int32Array(memory);
    this.#workers = this.#words[WORKERS] ?? 0;
    this.#stride = strideFor(this.#workers);
    this.#rows = Math.floor((this.#words.length - HEADER) / this.#stride);
    this.#worker = worker;
  }

  /** The row of an endpoint, until it is released; a worker may hold it once. undefined: the table has no room. */
  claim(key: string): SharedLoad | undefined {
    const hash = this.#hash(key);
    this.#lock();
    try {
      const row = this.#find(hash);
      if (row === undefined) {
        if (Atomics.exchange(this.#words, WAS_FULL, 1) === 0) this.#onFull();
        return undefined;
      }
      return new SharedLoad(this.#words, row + CELLS, this.#workers, this.#worker);
    } finally {
      this.#unlock();
    }
  }

  /** The part of this worker in a limit of what threads cannot share, at least 1. Together, the parts of all workers are the limit. */
  partOf(limit: number): number {
    const extra = this.#worker < limit % this.#workers ? 1 : 0;
    return Math.max(1, Math.floor(limit / this.#workers) + extra);
  }

  /** Empties the cells of a worker that has died, and releases its lock. Call only after the thread has ended. */
  forget(worker: number): void {
    const words = this.#words;
    if (Atomics.compareExchange(words, LOCK, worker + 1, 0) === worker + 1) Atomics.notify(words, LOCK);
    for (let i = 0; i < this.#rows; i++) {
      const cell = this.#at(i) + CELLS + worker;
      // Without a store, the system need not allocate pages that were never used.
      if (Atomics.load(words, cell) !== 0) Atomics.store(words, cell, 0);
    }
  }

  /** The row of this endpoint, else a free one, which becomes its own. Under the lock. */
  #find(hash: Hash): number | undefined {
    const words = this.#words;
    const first = ((hash[0] ?? 0) >>> 0) % this.#rows;
    let free: number | undefined;
    for (let i = 0; i < Math.min(WINDOW, this.#rows); i++) {
      const row = this.#at((first + i) % this.#rows);
      if (hash.every((word, at) => words[row + at] === word)) return this.#take(row);
      if (free === undefined && this.#isFree(row)) free = row;
    }
    if (free === undefined) return undefined;
    for (const [at, word] of hash.entries()) words[free + at] = word;
    return this.#take(free);
  }

  #take(row: number): number {
    Atomics.store(this.#words, row + CELLS + this.#worker, 1);
    return row;
  }

  #isFree(row: number): boolean {
    for (let worker = 0; worker < this.#workers; worker++)
      if (Atomics.load(this.#words, row + CELLS + worker) !== 0) return false;
    return true;
  }

  #at(index: number): number {
    return HEADER + index * this.#stride;
  }

  #hash(key: string): Hash {
    // A copy, because node:crypto takes no shared memory.
    const secret = new Uint8Array(this.#memory, 4 * SECRET, 4 * SECRET_WORDS).slice();
    const digest = createHmac("sha256", secret).update(key).digest();
    return Array.from({ length: HASH_WORDS }, (_, i) => digest.readInt32LE(4 * i));
  }

  #lock(): void {
    const words = this.#words;
    for (let tries = 1; ; tries++) {
      if (Atomics.compareExchange(words, LOCK, 0, this.#worker + 1) === 0) return;
      const holder = Atomics.load(words, LOCK);
      if (tries > SPINS && holder !== 0) Atomics.wait(words, LOCK, holder, SLEEP_MS);
    }
  }

  #unlock(): void {
    Atomics.store(this.#words, LOCK, 0);
  }
}

/** The calls in progress at one endpoint. */
export class SharedLoad {
  readonly #words: Int32Array;
  readonly #first: number;
  readonly #end: number;
  readonly #own: number;

  /** `first`: the cell of the first of `workers`; `worker` is the index of this one. */
  constructor(words: Int32Array, first: number, workers: number, worker: number) {
    this.#words = words;
    this.#first = first;
    this.#end = first + workers;
    this.#own = first + worker;
  }

  /**
   * Of all workers; of the others, what they had a moment before. Plain loads: with 16 workers, a choice of two endpoints reads 32 cells, which
   * took 0.16 µs more than without sharing, and 0.32 by Atomics.
   */
  get calls(): number {
    const words = this.#words;
    let sum = 0;
    for (let cell = this.#first; cell < this.#end; cell++) {
      const held = words[cell] as number;
      if (held > 1) sum += held - 1;
    }
    return sum;
  }

  /**
   * The same. Of two workers that call `add` and then read this, at least one sees the calls of both: all threads see stores and loads by
   * Atomics in the same order.
   */
  get exactCalls(): number {
    const words = this.#words;
    let sum = 0;
    for (let cell = this.#first; cell < this.#end; cell++) {
      const held = Atomics.load(words, cell);
      if (held > 1) sum += held - 1;
    }
    return sum;
  }

  /** Adds calls of this worker, or subtracts them. */
  add(calls: number): void {
    const words = this.#words;
    Atomics.store(words, this.#own, (words[this.#own] as number) + calls);
  }

  /** Gives the row back. Calls of this worker that are still in progress count here no more. */
  release(): void {
    Atomics.store(this.#words, this.#own, 0);
  }
}

function strideFor(workers: number): number {
  return LINE * Math.ceil((CELLS + workers) / LINE);
}
