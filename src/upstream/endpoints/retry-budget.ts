import type { RetryBudgetSettings } from "../settings/settings.ts";

/** Parts of an interval: old events leave the count one part at a time. */
const SLOTS = 10;

/** Counts what happened in the last `interval` milliseconds, to a tenth of it. */
class RecentCount {
  readonly #slotMs: number;
  readonly #slots: number[] = new Array<number>(SLOTS).fill(0);
  /** Number of the newest slot since time 0. */
  #newest = 0;
  #total = 0;

  constructor(interval: number) {
    this.#slotMs = interval / SLOTS;
  }

  /** `now`: `performance.now()` ms, here and below. */
  total(now: number): number {
    const at = Math.floor(now / this.#slotMs);
    for (let slot = Math.max(this.#newest + 1, at - SLOTS + 1); slot <= at; slot++) {
      this.#total -= this.#slots[slot % SLOTS] as number;
      this.#slots[slot % SLOTS] = 0;
    }
    this.#newest = at;
    return this.#total;
  }

  add(now: number): void {
    this.#total = this.total(now) + 1;
    this.#slots[this.#newest % SLOTS] = (this.#slots[this.#newest % SLOTS] as number) + 1;
  }
}

/**
 * Limits retries to a share of the requests to a backend, so that they do not multiply the load of a backend that fails (GEP-3388).
 * A low rate of retries is always allowed: a share of few requests would be none.
 */
export class RetryBudget {
  /** Identifies it: what it is the budget of, and its settings. */
  readonly key: string;
  readonly #settings: RetryBudgetSettings;
  readonly #requests: RecentCount;
  readonly #retries: RecentCount;
  /** The retries over the interval of `minRetryRate`. */
  readonly #rate: RecentCount;

  constructor(key: string, settings: RetryBudgetSettings) {
    this.key = key;
    this.#settings = settings;
    this.#requests = new RecentCount(settings.interval);
    this.#retries = new RecentCount(settings.interval);
    this.#rate = new RecentCount(settings.minRetryRate.interval);
  }

  /** A request begins, with its first attempt. */
  begin(now: number): void {
    this.#requests.add(now);
  }

  /** Takes one retry. False: there have been too many. */
  take(now: number): boolean {
    const { percent, minRetryRate } = this.#settings;
    const retries = this.#retries.total(now) + 1;
    const share = (100 * retries) / (this.#requests.total(now) + retries);
    if (share > percent && this.#rate.total(now) >= minRetryRate.count) return false;
    this.#retries.add(now);
    this.#rate.add(now);
    return true;
  }
}
