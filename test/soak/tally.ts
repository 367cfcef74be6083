/** What became of all requests of a soak. */

/** Milliseconds after a worker's end during which its connections, and those that the system had queued for it, break. */
const DEATH_MS = 2000;
/** Failures that are shown; all are counted. */
const SHOWN = 20;

interface Count {
  done: number;
  failed: number;
  /** Broken by the end of a worker that the soak has killed. */
  cut: number;
}

/** One request, message or connection under way. `kind` names a line of the summary. */
export interface Attempt {
  readonly kind: string;
  readonly begun: number;
}

export class Tally {
  readonly counts = new Map<string, Count>();
  readonly #kills: number[] = [];
  #shown = 0;
  readonly #start = performance.now();

  begin(kind: string): Attempt {
    return { kind, begun: performance.now() };
  }

  /** A worker is killed now: what is under way, or begins before its replacement listens, may break. */
  kill(): void {
    this.#kills.push(performance.now());
  }

  done({ kind }: Attempt): void {
    this.#count(kind).done++;
  }

  failed({ kind, begun }: Attempt, error: unknown): void {
    const now = performance.now();
    if (this.#kills.some((at) => begun < at + DEATH_MS && now > at)) {
      this.#count(kind).cut++;
      return;
    }
    this.#count(kind).failed++;
    const text = error instanceof Error ? `${error.name}: ${error.message.slice(0, 300)}` : String(error);
    const second = ((begun - this.#start) / 1000).toFixed(2);
    const took = Math.round(now - begun);
    if (this.#shown++ < SHOWN)
      process.stdout.write(`failed: ${kind}, begun at ${second} s, after ${took} ms: ${text}\n`);
  }

  get totals(): Count {
    const sum: Count = { done: 0, failed: 0, cut: 0 };
    for (const { done, failed, cut } of this.counts.values()) {
      sum.done += done;
      sum.failed += failed;
      sum.cut += cut;
    }
    return sum;
  }

  #count(kind: string): Count {
    let count = this.counts.get(kind);
    if (count === undefined) {
      count = { done: 0, failed: 0, cut: 0 };
      this.counts.set(kind, count);
    }
    return count;
  }
}
