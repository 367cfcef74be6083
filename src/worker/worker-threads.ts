import { Worker } from "node:worker_threads";
import { moduleUrl } from "../base/app-root.ts";

/**
 * MiB for the new objects of a worker. What a request allocates dies with it, so a small space is collected quickly, and a
 * reload of 10,000 routes does not fill it with survivors whose move stops the thread (with the default up to 35 ms).
 * Smaller still, requests in flight are taken for old objects, which costs 2 % of CPU with that many routes.
 */
const YOUNG_GENERATION_MB = 8;

/**
 * Threads of workers. A thread takes its options as its first message, so it can start before they are known: a program starts
 * its threads first and loads everything else meanwhile, which makes it ready a quarter sooner.
 */
export class WorkerThreads {
  readonly #spare = new Map<number, Worker>();

  /** Starts threads for the workers with the indexes 0 to `count` - 1. */
  constructor(count: number) {
    for (let index = 0; index < count; index++) this.#spare.set(index, start(index));
  }

  /** The thread of worker `index`: the spare one, else a new one. */
  take(index: number): Worker {
    const thread = this.#spare.get(index) ?? start(index);
    this.#spare.delete(index);
    return thread;
  }

  /** Ends the threads that nothing has taken. */
  close(): void {
    for (const thread of this.#spare.values()) void thread.terminate();
    this.#spare.clear();
  }
}

function start(index: number): Worker {
  return new Worker(moduleUrl("worker/worker"), {
    name: `worker-${index}`,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
}
