/**
 * Frames that are legal, and cheaper to send than to handle. A peer that sends far more of them than useful work needs loses its
 * connection by ENHANCE_YOUR_CALM (RFC 9113 10.5); nothing else is affected.
 */

interface Budget {
  /** What exceeded the budget, for the log. */
  readonly what: string;
  /** How many may come at once. */
  readonly burst: number;
  readonly perSecond: number;
  /** How many more are allowed for each unit of useful work on the connection. */
  readonly perUse: number;
}

const BUDGETS = {
  /**
   * Streams that the peer resets before they end (rapid reset, CVE-2023-44487) or that it makes us reset (CVE-2025-8671): each has
   * begun a request and no longer counts towards the concurrent streams. Useful work: streams that ended normally.
   */
  resets: { what: "streams that were reset", burst: 1000, perSecond: 100, perUse: 1 },
  /** Each has to be acknowledged (CVE-2019-9515). Useful work, from here on: HEADERS and DATA frames that we have sent. */
  settings: { what: "SETTINGS frames", burst: 100, perSecond: 10, perUse: 0 },
  /** Each has to be acknowledged (CVE-2019-9512). gRPC clients measure the round trip with them while data flows. */
  pings: { what: "PING frames", burst: 1000, perSecond: 100, perUse: 1 },
  /**
   * RST_STREAM of streams that have ended here. A server that responds before it has the whole request resets the stream (RFC 9113
   * 8.1), and Go servers reset it again for each DATA frame that was on its way; both sides may also reset a stream at the same
   * time.
   */
  lateResets: { what: "RST_STREAM frames of streams that have ended", burst: 1000, perSecond: 100, perUse: 1 },
  /** Frames without a payload or of unknown types (CVE-2019-9518), and acknowledgements of what was not sent. */
  idle: { what: "frames that carry nothing", burst: 1000, perSecond: 100, perUse: 0 },
  /** PRIORITY (CVE-2019-9513) and PRIORITY_UPDATE. */
  priorities: { what: "priority frames", burst: 1000, perSecond: 100, perUse: 2 },
  /** Increments of one byte make us send data in tiny frames (CVE-2019-9511). */
  windowUpdates: { what: "WINDOW_UPDATE frames", burst: 2000, perSecond: 500, perUse: 8 },
} as const satisfies Readonly<Record<string, Budget>>;

export type Flood = keyof typeof BUDGETS;

interface Count {
  frames: number;
  /** Useful work, as of the last comparison with the count. */
  usedAt: number;
}

const FLOODS = Object.keys(BUDGETS) as readonly Flood[];

/** Counts one connection's frames against the budgets. */
export class FloodGuard {
  /** Absent while nothing is counted, as on an idle connection. */
  #counts: { [kind in Flood]?: Count | undefined } | undefined;
  #sweptAt: number;

  /** `now`, here and below: `performance.now()` ms. */
  constructor(now: number) {
    this.#sweptAt = now;
  }

  /**
   * Counts one frame or reset. `used`: all useful work on this connection so far. Returns what exceeded its budget, otherwise
   * undefined.
   */
  count(kind: Flood, used: number): string | undefined {
    const budget: Budget = BUDGETS[kind];
    this.#counts ??= {};
    this.#counts[kind] ??= { frames: 0, usedAt: used };
    const count = this.#counts[kind];
    if (++count.frames <= budget.burst) return undefined;
    count.frames = Math.max(0, count.frames - (used - count.usedAt) * budget.perUse);
    count.usedAt = used;
    return count.frames > budget.burst ? budget.what : undefined;
  }

  /** Reduces the counts by what `perSecond` allows for the time since the last call. Called about once a second. */
  sweep(now: number): void {
    const seconds = (now - this.#sweptAt) / 1000;
    this.#sweptAt = now;
    const counts = this.#counts;
    if (counts === undefined) return;
    let open = false;
    for (const kind of FLOODS) {
      const count = counts[kind];
      if (count === undefined) continue;
      count.frames -= BUDGETS[kind].perSecond * seconds;
      if (count.frames > 0) open = true;
      else counts[kind] = undefined;
    }
    if (!open) this.#counts = undefined;
  }
}
