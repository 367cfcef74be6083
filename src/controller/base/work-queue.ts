/** How long a key rests after a run; all in milliseconds. */
interface Rests {
  /** After a failure: `first`, doubled with each further one, up to `longest`. */
  readonly failure: { readonly first: number; readonly longest: number };
  /**
   * After a run that has changed something: `first`, doubled with each further one, up to `longest`; again `first` after
   * `quiet`. So a single change is fast, and many in a row become few.
   */
  readonly change?: { readonly first: number; readonly longest: number; readonly quiet: number };
}

interface WorkItem {
  running: boolean;
  /** Added while it ran. */
  again: boolean;
  failures: number;
  changes: number;
  changedAt: number;
  /** Until when it rests. */
  failureRest: number;
  changeRest: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Runs work by key: a key never runs twice at once, several additions become one run, a failed run is repeated after a growing
 * rest. The work compares the actual with the desired state, so the key is all that it needs.
 */
export class WorkQueue {
  /** Resolves to whether it has changed anything. */
  readonly #work: (key: string, signal: AbortSignal) => Promise<boolean>;
  readonly #failed: (key: string, error: unknown, failures: number) => void;
  readonly #parallel: number;
  readonly #rests: Rests;
  readonly #entries = new Map<string, WorkItem>();
  readonly #ready = new Set<string>();
  readonly #closing = new AbortController();
  #running = 0;
  #idle: (() => void)[] = [];

  /** `parallel`: how many keys run at once. `failed` is called after each failure with the number of failures in a row. */
  constructor(
    parallel: number,
    rests: Rests,
    work: (key: string, signal: AbortSignal) => Promise<boolean>,
    failed: (key: string, error: unknown, failures: number) => void,
  ) {
    this.#parallel = parallel;
    this.#rests = rests;
    this.#work = work;
    this.#failed = failed;
  }

  /** Runs the key as soon as it has rested. */
  add(key: string): void {
    if (this.#closing.signal.aborted) return;
    const entry = this.#entry(key);
    if (entry.running) {
      entry.again = true;
      return;
    }
    if (this.#ready.has(key)) return;
    clearTimeout(entry.timer);
    const rest = Math.max(entry.failureRest, entry.changeRest) - performance.now();
    if (rest > 0) entry.timer = setTimeout(() => this.#start(key), rest);
    else this.#start(key);
  }

  /** As `add`, but without the rest after a failure: what made it fail may be gone. */
  retry(key: string): void {
    const entry = this.#entry(key);
    entry.failures = 0;
    entry.failureRest = 0;
    this.add(key);
  }

  /** Stops: starts no further work and aborts the requests of running work. Resolves when all of it has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#ready.clear();
    for (const { timer } of this.#entries.values()) clearTimeout(timer);
    this.#entries.clear();
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #entry(key: string): WorkItem {
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = {
        running: false,
        again: false,
        failures: 0,
        changes: 0,
        changedAt: 0,
        failureRest: 0,
        changeRest: 0,
        timer: undefined,
      };
      this.#entries.set(key, entry);
    }
    return entry;
  }

  #start(key: string): void {
    this.#ready.add(key);
    for (const next of this.#ready) {
      if (this.#running >= this.#parallel) return;
      this.#ready.delete(next);
      void this.#run(next);
    }
  }

  async #run(key: string): Promise<void> {
    const entry = this.#entry(key);
    entry.running = true;
    entry.again = false;
    this.#running++;
    try {
      const changed = await this.#work(key, this.#closing.signal);
      entry.failures = 0;
      entry.failureRest = 0;
      if (changed) this.#restAfterChange(entry);
    } catch (error) {
      if (!this.#closing.signal.aborted) {
        const { first, longest } = this.#rests.failure;
        entry.failures++;
        entry.failureRest = performance.now() + Math.min(longest, first * 2 ** (entry.failures - 1));
        entry.again = true;
        this.#failed(key, error, entry.failures);
      }
    }
    entry.running = false;
    this.#running--;
    if (this.#closing.signal.aborted) {
      if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    if (entry.again) this.add(key);
    else this.#forgetLater(key, entry);
    const [next] = this.#ready;
    if (next !== undefined) this.#start(next);
  }

  #restAfterChange(entry: WorkItem): void {
    const { change } = this.#rests;
    if (change === undefined) return;
    const now = performance.now();
    entry.changes = now - entry.changedAt > change.quiet ? 0 : entry.changes + 1;
    entry.changedAt = now;
    entry.changeRest = now + Math.min(change.longest, change.first * 2 ** entry.changes);
  }

  #forgetLater(key: string, entry: WorkItem): void {
    const quiet = this.#rests.change?.quiet ?? 0;
    entry.timer = setTimeout(() => this.#entries.delete(key), quiet);
    // Must not keep the process alive.
    entry.timer.unref();
  }
}
