/**
 * Bounds how many Gateways get new pods at once. A new version of the controller changes the pods of every Gateway; all at once, this would
 * double the pods of a cluster, and a broken version would reach every Gateway before the problem is visible.
 */

/** Milliseconds after which a rollout no longer delays others: its pods may never become available. */
const PATIENCE_MS = 120_000;

export class Rollouts {
  readonly #limit: number;
  /** Called when a waiting Gateway may begin. */
  readonly #begin: (gateway: string) => void;
  /** Gateways whose pods are being replaced. */
  readonly #running = new Map<string, NodeJS.Timeout>();
  readonly #waiting = new Set<string>();

  /** `limit`: number of Gateways at once. */
  constructor(limit: number, begin: (gateway: string) => void) {
    this.#limit = limit;
    this.#begin = begin;
  }

  /** Whether the pods of a Gateway may be replaced now. If not, the Gateway waits for its turn. */
  admit(gateway: string): boolean {
    if (this.#running.has(gateway)) return true;
    if (this.#running.size >= this.#limit) {
      this.#waiting.add(gateway);
      return false;
    }
    this.#start(gateway);
    return true;
  }

  /** All pods of a Gateway are new and available, or the Gateway is gone. */
  end(gateway: string): void {
    this.#waiting.delete(gateway);
    const timer = this.#running.get(gateway);
    if (timer === undefined) return;
    clearTimeout(timer);
    this.#running.delete(gateway);
    const [next] = this.#waiting;
    if (next === undefined) return;
    // It has the turn from here on: if it does not need it any more, the turn ends like any other, and the next one waits no longer.
    this.#start(next);
    this.#begin(next);
  }

  close(): void {
    for (const timer of this.#running.values()) clearTimeout(timer);
    this.#running.clear();
    this.#waiting.clear();
  }

  #start(gateway: string): void {
    this.#waiting.delete(gateway);
    this.#running.set(gateway, setTimeout(() => this.end(gateway), PATIENCE_MS).unref());
  }
}
