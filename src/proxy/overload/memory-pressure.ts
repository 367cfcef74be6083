/** What all threads know of the memory of the process. */
const UNDER_PRESSURE = 0;
const COLLECTIONS = 1;
const NEAR = 2;
/** A multiple of 8, as numbers of 8 bytes follow. */
const FLAGS_BYTES = 16;

/**
 * The memory of the process against its limit, as all threads see it: the main thread measures the whole (worker/memory-watch.ts),
 * workers report what they hold and turn work away (overload.ts). In shared memory, because a message would wait behind the
 * work that fills the memory.
 */
export class MemoryPressure {
  readonly memory: SharedArrayBuffer;
  readonly #flags: Int32Array;
  readonly #held: Float64Array;

  /** `of`: the number of workers; in a worker, the memory that the main thread made. */
  constructor(of: number | SharedArrayBuffer) {
    this.memory =
      typeof of === "number" ? new SharedArrayBuffer(FLAGS_BYTES + of * Float64Array.BYTES_PER_ELEMENT) : of;
    this.#flags = new Int32Array(this.memory, 0, FLAGS_BYTES / Int32Array.BYTES_PER_ELEMENT);
    this.#held = new Float64Array(this.memory, FLAGS_BYTES);
  }

  /** The process is short of memory: new work is turned away. */
  get active(): boolean {
    return Atomics.load(this.#flags, UNDER_PRESSURE) === 1;
  }

  set active(active: boolean) {
    Atomics.store(this.#flags, UNDER_PRESSURE, active ? 1 : 0);
  }

  /** The process comes near its limit: workers read little at a time and keep little. */
  get near(): boolean {
    return Atomics.load(this.#flags, NEAR) === 1;
  }

  set near(near: boolean) {
    Atomics.store(this.#flags, NEAR, near ? 1 : 0);
  }

  /** How often workers have been asked to collect garbage. */
  get collections(): number {
    return Atomics.load(this.#flags, COLLECTIONS);
  }

  askToCollect(): void {
    Atomics.add(this.#flags, COLLECTIONS, 1);
  }

  /** Bytes that all workers hold. */
  get held(): number {
    return this.#held.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Every worker has reported what it holds. */
  get allReported(): boolean {
    return this.#held.every((bytes) => bytes > 0);
  }

  /** Bytes that worker `index` holds: heap and buffers. */
  hold(index: number, bytes: number): void {
    this.#held[index] = bytes;
  }
}
