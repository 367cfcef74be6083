import { Worker } from "node:worker_threads";
import { moduleUrl } from "../../base/app-root.ts";
import { FairQueue } from "./fair-queue.ts";
import type { HashingJob } from "./hashing-thread.ts";

/** Checks that may wait; at 50 ms each, the last waits for some three seconds. */
const MAX_WAITING = 64;

/** `busy`: too many wait already. */
export type CheckResult = "right" | "wrong" | "busy";

interface Check extends HashingJob {
  readonly resolve: (result: CheckResult) => void;
}

/**
 * Checks passwords against hashes that are slow on purpose in a thread of their own, one at a time: a thread that serves
 * requests would stand still for 50 ms and more with each. Clients take turns, so that one that guesses passwords does not
 * keep others out. The thread starts with the first check.
 */
export class PasswordChecks {
  readonly #queue: FairQueue<Check>;
  #thread: Worker | undefined;
  #current: Check | undefined;

  constructor(maxWaiting = MAX_WAITING) {
    this.#queue = new FairQueue(maxWaiting);
  }

  /** `client`: who waits in one line. */
  check(client: string, hashed: string, password: string): Promise<CheckResult> {
    return new Promise((resolve) => {
      this.#queue.add(client, { hashed, password, resolve })?.resolve("busy");
      if (this.#current === undefined) this.#next();
    });
  }

  #next(): void {
    const check = this.#queue.next();
    this.#current = check;
    if (check === undefined) {
      this.#thread?.unref();
      return;
    }
    const thread = this.#thread ?? this.#start();
    thread.ref();
    thread.postMessage({ hashed: check.hashed, password: check.password } satisfies HashingJob);
  }

  #start(): Worker {
    const thread = new Worker(moduleUrl("policies/basic-auth/hashing-thread"), { name: "passwords" });
    this.#thread = thread;
    thread.on("message", (right: boolean) => this.#conclude(right ? "right" : "wrong"));
    // Such as no memory left; `exit` follows.
    thread.on("error", () => {});
    thread.on("exit", () => {
      this.#thread = undefined;
      if (this.#current !== undefined) this.#conclude("busy");
    });
    return thread;
  }

  #conclude(result: CheckResult): void {
    const check = this.#current;
    this.#next();
    check?.resolve(result);
  }
}
