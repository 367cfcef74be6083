/** Counts the outcomes of all requests of a soak. */

/** For this long after a worker's end, its connections and those that the system had queued for it may break. */
const DEATH_MS = 2000;
/** Failures that are shown; all are counted. */
const SHOWN = 20;
/** Milliseconds until the gateway has logged what a client has noticed. */
const LOG_DELAY_MS = 500;
/** Events of the soak that are shown with a failure. */
const EVENTS_SHOWN = 4;

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
  /** What it is called in `x-request-id`, where it has one. */
  readonly id: string;
  /** What it is doing now, such as `response`. */
  step: string;
}

/** A failed attempt, and where to look for it in the log of the gateway. */
export interface Failure {
  readonly id: string;
  /** Milliseconds of the Unix epoch. */
  readonly from: number;
  readonly to: number;
}

export class Tally {
  readonly counts = new Map<string, Count>();
  readonly #kills: number[] = [];
  #shown = 0;
  readonly #start = performance.now();
  readonly #events: { readonly at: number; readonly text: string }[] = [];
  readonly #explain: (failure: Failure) => readonly string[];
  #begun = 0;

  /** `explain`: what the gateway has logged about it. */
  constructor(explain: (failure: Failure) => readonly string[]) {
    this.#explain = explain;
  }

  begin(kind: string): Attempt {
    return { kind, begun: performance.now(), id: `soak-${++this.#begun}`, step: "connect" };
  }

  /** Something that the soak does to the gateway, such as `reload 7`; shown with what fails after it. */
  event(text: string): void {
    this.#events.push({ at: performance.now(), text });
  }

  /** A worker is being killed: attempts under way, and those that begin before its replacement listens, may break. */
  kill(): void {
    this.#kills.push(performance.now());
    this.event("a worker is killed");
  }

  done({ kind }: Attempt): void {
    this.#count(kind).done++;
  }

  failed({ kind, begun, id, step }: Attempt, error: unknown): void {
    const now = performance.now();
    if (this.#kills.some((at) => begun < at + DEATH_MS && now > at)) {
      this.#count(kind).cut++;
      return;
    }
    this.#count(kind).failed++;
    if (this.#shown++ >= SHOWN) return;
    const lines = [
      `failed: ${kind}, ${id}, begun at ${this.#second(begun)}, after ${Math.round(now - begun)} ms, in step ${step}: ${describe(error)}`,
      ...this.#events.slice(-EVENTS_SHOWN).map(({ at, text }) => `  ${this.#second(at)}: ${text}`),
    ];
    process.stdout.write(`${lines.join("\n")}\n`);
    // The line of the log may come after the client has noticed.
    const failure = { id, from: Date.now() - (now - begun), to: Date.now() + LOG_DELAY_MS };
    setTimeout(() => {
      const log = this.#explain(failure).map((line) => `  ${line}`);
      process.stdout.write(`log of the gateway about ${id}:\n${log.join("\n") || "  nothing"}\n`);
    }, LOG_DELAY_MS);
  }

  #second(at: number): string {
    return `${((at - this.#start) / 1000).toFixed(2)} s`;
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

/** The message with the code of the system or of HTTP/2, the details of gRPC, and the same of its causes. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { name, message, cause, ...rest } = error;
  const fields = Object.entries(rest).flatMap(([key, value]) =>
    typeof value === "string" || typeof value === "number" ? [`${key} ${String(value).slice(0, 200)}`] : [],
  );
  const more = [...fields, ...(cause === undefined ? [] : [`because of ${describe(cause)}`])];
  const frame = /^ +at .*clients\.ts:\d+/m.exec(error.stack ?? "")?.[0].trim();
  return [`${name}: ${message.slice(0, 300)}`, ...more, ...(frame === undefined ? [] : [frame])].join("; ");
}
