import { Worker } from "node:worker_threads";
import { moduleUrl } from "../../base/app-root.ts";
import { FairQueue } from "./fair-queue.ts";
import type { HashingJob } from "./hashing-thread.ts";

/** Passwords that may wait per worker; at 50 ms each, the last one waits about three seconds. */
const MAX_WAITING = 64;

/** `busy`: not verified, because too many wait or the thread has died. Never treated as a match. */
export type CheckResult = "right" | "wrong" | "busy";

interface Check extends HashingJob {
  readonly resolve: (result: CheckResult) => void;
}

/**
 * Verifies passwords in a separate thread, one at a time: in the thread that serves requests, each would stop all traffic for 50 ms
 * and more. Clients take turns (`FairQueue`). The thread starts with the first password and, idle, does not keep the process alive.
 */
export class PasswordChecks {
  readonly #queue: FairQueue<Check>;
  /** Those of shadow policies, for which no request waits: their turn comes when the queue is empty. */
  readonly #idle: FairQueue<Check>;
  #thread: Worker | undefined;
  #current: Check | undefined;

  constructor(maxWaiting = MAX_WAITING) {
    this.#queue = new FairQueue(maxWaiting);
    this.#idle = new FairQueue(maxWaiting);
  }

  /** `client`: owner of a line of the queue, the address of the peer. `shadow`: others come first. Never rejects. */
  check(client: string, hashed: string, password: string, shadow = false): Promise<CheckResult> {
    return new Promise((resolve) => {
      (shadow ? this.#idle : this.#queue).add(client, { hashed, password, resolve })?.resolve("busy");
      if (this.#current === undefined) this.#next();
    });
  }

  #next(): void {
    const check = this.#queue.next() ?? this.#idle.next();
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
    // For example out of memory. `exit` follows, which settles the check in progress.
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
