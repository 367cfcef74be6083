import { BoundedCache, owned } from "../base/bounded-cache.ts";

/** A change of the health of an endpoint. `at`: ms since the epoch. */
export type HealthChange =
  | {
      readonly at: number;
      readonly state: "evicted";
      /** Milliseconds of the eviction. */
      readonly forMs: number;
      readonly cause?: EvictionCause;
    }
  | { readonly at: number; readonly state: "unhealthy"; readonly reason: string }
  /** Active health checks pass again, or for the first time. The end of an eviction is no change of its own. */
  | { readonly at: number; readonly state: "healthy" };

/** The state of an endpoint when its failures evicted it. */
export interface EvictionCause {
  /** Failed calls in a row. */
  readonly consecutiveFailures: number;
  /** Moving average over calls: 1 = all succeeded, 0 = none did. */
  readonly health: number;
}

/** Changes that are kept of each endpoint. */
const CHANGES = 16;
/** Endpoints at most. Those that changed longest ago are forgotten first. */
const ENDPOINTS = 2000;
/** Characters of a reason at most: part of it may come from a server. */
const REASON = 200;

/** The last changes of endpoints, by their keys. */
export class HealthHistory {
  readonly #changes = new BoundedCache<readonly HealthChange[]>(ENDPOINTS);

  add(key: string, change: HealthChange): void {
    const before = this.#changes.get(key) ?? [];
    const last = before.at(-1);
    // A worker that takes over the checks reports what is known; and a check may go on failing for another reason.
    if (change.state !== "evicted" && last?.state === change.state) return;
    const kept = change.state === "unhealthy" ? { ...change, reason: owned(change.reason.slice(0, REASON)) } : change;
    this.#changes.set(key, [...before.slice(1 - CHANGES), kept]);
  }

  /** The last changes of endpoints that are shown as one, the latest first. */
  of(keys: readonly string[]): readonly HealthChange[] {
    const all = keys.flatMap((key) => this.#changes.get(key) ?? []);
    return all.toSorted((a, b) => b.at - a.at).slice(0, CHANGES);
  }
}
