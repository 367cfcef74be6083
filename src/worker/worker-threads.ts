import { Worker } from "node:worker_threads";
import { moduleUrl } from "../base/app-root.ts";
// The threads inherit the process id when they start.
import "../base/process-id.ts";

/**
 * Size of V8's young generation in a worker, in MiB. Objects of a request die with it, so a small space is collected quickly,
 * and a reload of 10,000 routes cannot fill it with survivors, whose copying stops the thread (up to 35 ms with V8's default).
 * In a smaller space, objects of requests in progress would be promoted to the old generation: with 100 calls of gRPC in progress,
 * collections take a quarter to a half of the thread's time with 8 MiB, and 5 % with 16.
 */
const YOUNG_GENERATION_MB = 16;

/**
 * The threads of workers. A thread gets its options as its first message, so it can start before they are known: the program
 * starts its threads first and loads everything else meanwhile, which shortens its start by a quarter.
 */
export class WorkerThreads {
  readonly #spare = new Map<number, Worker>();

  /** Starts threads for the workers with the indexes 0 to `count` - 1. */
  constructor(count: number) {
    for (let index = 0; index < count; index++) this.#spare.set(index, this.#start(index));
  }

  /** The thread for worker `index`: the spare one if there is one, else a new one. */
  take(index: number): Worker {
    const thread = this.#spare.get(index) ?? this.#start(index);
    this.#spare.delete(index);
    return thread;
  }

  /** Ends spare threads that are not in use: the configuration asked for fewer workers than was guessed. */
  close(): void {
    for (const thread of this.#spare.values()) void thread.terminate();
    this.#spare.clear();
  }

  #start(index: number): Worker {
    return new Worker(moduleUrl("worker/worker"), {
      name: `worker-${index}`,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
  }
}
