import { createHmac, randomBytes } from "node:crypto";

/** Endpoints that the table has room for. The system allocates its pages as they are used: an endpoint takes one cache line with up to 12 workers. */
const ROWS = 16_384;
/** Rows in which an endpoint may be, from the one of its hash on. */
const WINDOW = 32;
/** Words of the header: the number of workers, the lock, then the secret of the hash. */
const WORKERS = 0;
const LOCK = 1;
const SECRET = 2;
const SECRET_WORDS = 4;
const HEADER = 16;
/** Words of a row: calls of all workers, the hash of the endpoint, then a cell for each worker. */
const CALLS = 0;
const HASH = 1;
const HASH_WORDS = 3;
const CELLS = HASH + HASH_WORDS;
/** Rows begin at a cache line, so that workers with different endpoints do not slow each other down. */
const LINE = 16;
/** Attempts before a thread sleeps on the lock. The holder needs about a microsecond unless it is descheduled. */
const SPINS = 200;
const SLEEP_MS = 1;

type Hash = readonly number[];

/**
 * How many calls are in progress at an endpoint, over all workers: in a table that they share, so that a balancer sees the calls of the
 * others, and a limit holds for the process.
 *
 * A row is found by a keyed hash of the endpoint's key, so that no configuration can aim at the row of another one. It has the sum, which
 * is changed atomically, and a cell for each worker: 0, or 1 and the calls of that worker. The sum is what requests read; the cells say
 * whether the row is in use, and what to subtract when a worker dies. Only claims need the lock. A row whose cells are all 0 is free.
 */
export class SharedLoads {
  readonly #memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #stride: number;
  readonly #rows: number;
  readonly #worker: number;

  /** Memory for this many workers; `rows` is for tests. */
  static memoryFor(workers: number, rows = ROWS): SharedArrayBuffer {
    const memory = new SharedArrayBuffer(4 * (HEADER + rows * strideFor(workers)));
    const words = new Int32Array(memory);
    words[WORKERS] = workers;
    const secret = randomBytes(4 * SECRET_WORDS);
    for (let i = 0; i < SECRET_WORDS; i++) words[SECRET + i] = secret.readInt32LE(4 * i);
    return memory;
  }

  /** `worker`: the index of the thread, whose cells it writes. The main thread, which only calls `forget`, may leave it out. */
  constructor(memory: SharedArrayBuffer, worker = 0) {
    this.#memory = memory;
    this.#words = new Int32Array(memory);
    this.#stride = strideFor(this.#words[WORKERS] ?? 0);
    this.#rows = Math.floor((this.#words.length - HEADER) / this.#stride);
    this.#worker = worker;
  }

  /** The row of an endpoint, until it is released; a worker may hold it once. undefined: the table has no room. */
  claim(key: string): SharedLoad | undefined {
    const hash = this.#hash(key);
    this.#lock();
    try {
      const row = this.#find(hash);
      if (row === undefined) return undefined;
      return new SharedLoad(this.#words, row + CALLS, row + CELLS + this.#worker);
    } finally {
      this.#unlock();
    }
  }

  /** Takes the calls of a worker that has died out of all sums. Call only after the thread has ended. */
  forget(worker: number): void {
    const words = this.#words;
    if (Atomics.compareExchange(words, LOCK, worker + 1, 0) === worker + 1) Atomics.notify(words, LOCK);
    for (let i = 0; i < this.#rows; i++) {
      const row = this.#at(i);
      const cell = row + CELLS + worker;
      const held = Atomics.load(words, cell);
      if (held === 0) continue;
      // The sum first: as long as the cell is not 0, nobody takes the row for another endpoint.
      Atomics.sub(words, row + CALLS, held - 1);
      Atomics.store(words, cell, 0);
    }
  }

  /** The row of this endpoint, else a free one, which becomes its own. Under the lock. */
  #find(hash: Hash): number | undefined {
    const words = this.#words;
    const first = ((hash[0] ?? 0) >>> 0) % this.#rows;
    let free: number | undefined;
    for (let i = 0; i < Math.min(WINDOW, this.#rows); i++) {
      const row = this.#at((first + i) % this.#rows);
      if (hash.every((word, at) => words[row + HASH + at] === word)) return this.#take(row);
      if (free === undefined && this.#isFree(row)) free = row;
    }
    if (free === undefined) return undefined;
    for (const [at, word] of hash.entries()) words[free + HASH + at] = word;
    return this.#take(free);
  }

  #take(row: number): number {
    Atomics.store(this.#words, row + CELLS + this.#worker, 1);
    return row;
  }

  #isFree(row: number): boolean {
    for (let worker = 0; worker < (this.#words[WORKERS] ?? 0); worker++)
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
  readonly #sum: number;
  readonly #cell: number;

  constructor(words: Int32Array, sum: number, cell: number) {
    this.#words = words;
    this.#sum = sum;
    this.#cell = cell;
  }

  /** Of all workers. */
  get calls(): number {
    return Atomics.load(this.#words, this.#sum);
  }

  /**
   * Adds calls of this worker, or subtracts them. Returns the number of all workers before, so that of two workers at the last place of a limit
   * exactly one gets it. A thread is ended between two instructions of a function only if it calls another one, so the sum and the cell of
   * a dead worker agree.
   */
  add(calls: number): number {
    const words = this.#words;
    words[this.#cell] = (words[this.#cell] as number) + calls;
    return Atomics.add(words, this.#sum, calls);
  }

  /** Gives the row back, with the calls that are still in progress: they count here no more. */
  release(): void {
    this.add(1 - (this.#words[this.#cell] as number));
    Atomics.store(this.#words, this.#cell, 0);
  }
}

function strideFor(workers: number): number {
  return LINE * Math.ceil((CELLS + workers) / LINE);
}
