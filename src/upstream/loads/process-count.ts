import type { SharedLoad, SharedLoads } from "./shared-loads.ts";

/** Something in progress that has a limit: counted over all threads once they share it, else in this one. */
export class ProcessCount {
  #own = 0;
  #shared: SharedLoad | undefined;

  get isShared(): boolean {
    return this.#shared !== undefined;
  }

  /** From now on, until `release`, other threads that share `key` see what this one has in progress. False: the table has no room. */
  share(loads: SharedLoads, key: string): boolean {
    if (this.#shared === undefined) {
      this.#shared = loads.claim(key);
      this.#shared?.add(this.#own);
    }
    return this.isShared;
  }

  /**
   * Counts one more, and `end` follows, unless `limit` are in progress. If threads ask for the last place at the same time, at most one
   * gets it.
   */
  begin(limit: number): boolean {
    this.#own++;
    this.#shared?.add(1);
    if (limit === Number.POSITIVE_INFINITY || (this.#shared?.exactCalls ?? this.#own) <= limit) return true;
    this.end();
    return false;
  }

  end(): void {
    this.#own--;
    this.#shared?.add(-1);
  }

  /** No configuration has the limit any more: what is in progress counts in this thread only. */
  release(): void {
    this.#shared?.release();
    this.#shared = undefined;
  }
}
