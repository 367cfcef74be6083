import { NONE, type ShareTable } from "./share-table.ts";
import type { Hash64 } from "./sip-hash.ts";

/** Milliseconds before a limit without a share looks for one again. */
const RETRY_MS = 1000;

/** The share of one limit whose clients choose keys. Another limit may claim it once it is no longer in use. */
export class LimitShare {
  /** Identifies the limit in the table. */
  readonly owner: Hash64 = { low: 0, high: 0 };
  /** The share that the limit had last; NONE if it has had none. */
  last = NONE;
  readonly #table: ShareTable;
  /** Time in milliseconds before which the limit does not look for a share. */
  #lookAt = 0;

  constructor(table: ShareTable, name: string) {
    this.#table = table;
    table.hash(name, this.owner);
  }

  /** Finds the share that another thread has claimed for the limit, or claims one, if that is possible. */
  claim(now: number): boolean {
    if (now < this.#lookAt) return false;
    this.last = this.#table.claim(this.owner, now);
    if (this.last === NONE) this.#lookAt = now + RETRY_MS;
    return this.last !== NONE;
  }
}

/** What the count of a key is found by. */
export function keyed(name: string, key: string): string {
  return `${name} =${key}`;
}

/** What the common count of keys without room is found by. */
export function overflow(name: string): string {
  return `${name} overflow`;
}
