import type { Pool } from "./pool.ts";

/** Weight of the newest value in moving averages (reference 3.28). */
const ALPHA = 0.3;

/** One address that a backend may send to, with what the balancer has learned about it. */
export class Endpoint {
  readonly key: string;
  readonly pool: Pool;
  readonly capacity: number;
  /** 1 = every call of late succeeded, 0 = none did. */
  health = 1;
  /** Seconds until the response was complete; moving average over successful calls. */
  latency = 0;
  pending = 0;
  total = 0;
  consecutiveFailures = 0;

  constructor(key: string, pool: Pool, capacity: number) {
    this.key = key;
    this.pool = pool;
    this.capacity = capacity;
  }

  /** Higher is better. */
  get score(): number {
    return this.health / (1 + this.latency * (1 + 0.1 * this.pending));
  }

  begin(): void {
    this.pending++;
    this.total++;
  }

  /** `seconds` counts only for successful calls. */
  end(success: boolean, seconds: number): void {
    this.pending--;
    this.health = ALPHA * (success ? 1 : 0) + (1 - ALPHA) * this.health;
    if (success) {
      this.latency = this.latency === 0 ? seconds : ALPHA * seconds + (1 - ALPHA) * this.latency;
      this.consecutiveFailures = 0;
    } else this.consecutiveFailures++;
  }

  /** A call that ended without saying anything about the endpoint: the client left. */
  abandon(): void {
    this.pending--;
  }
}
