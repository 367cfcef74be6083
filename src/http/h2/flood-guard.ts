/**
 * Frames that cost a peer little and us something, although each of them is legal. A peer that sends many more of them than a
 * client at work has use for loses its connection, and nothing else: by ENHANCE_YOUR_CALM (RFC 9113 10.5).
 */

interface Budget {
  /** What the peer does too much of, for the log. */
  readonly what: string;
  /** How many may come at once. */
  readonly burst: number;
  readonly perSecond: number;
  /** How many more are fine for each thing of use that happened on the connection. */
  readonly perUse: number;
}

const BUDGETS = {
  /**
   * Streams that the peer resets before they end (rapid reset, CVE-2023-44487) or that it makes us reset (CVE-2025-8671): each has
   * begun a request and does not count towards the concurrent streams any more. Of use: streams that have ended.
   */
  resets: { what: "streams that were reset", burst: 1000, perSecond: 100, perUse: 1 },
  /** Each has to be acknowledged (CVE-2019-9515). Of use, from here on: frames of heads and data that we have sent. */
  settings: { what: "SETTINGS frames", burst: 100, perSecond: 10, perUse: 0 },
  /** Each has to be answered (CVE-2019-9512). Clients of gRPC measure the round trip by them while data flows. */
  pings: { what: "PING frames", burst: 1000, perSecond: 100, perUse: 1 },
  /** Frames without a payload or of unknown types (CVE-2019-9518). */
  idle: { what: "frames that carry nothing", burst: 1000, perSecond: 100, perUse: 0 },
  /** PRIORITY (CVE-2019-9513) and PRIORITY_UPDATE. */
  priorities: { what: "priority frames", burst: 1000, perSecond: 100, perUse: 2 },
  /** Of one byte each they make us send data in the smallest pieces (CVE-2019-9511). */
  windowUpdates: { what: "WINDOW_UPDATE frames", burst: 2000, perSecond: 500, perUse: 8 },
} as const satisfies Readonly<Record<string, Budget>>;

export type Flood = keyof typeof BUDGETS;

interface Count {
  frames: number;
  /** What was of use when the count was last compared with it. */
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
   * One more. `used`: what was of use on this connection so far, in all. Returns what there is too much of, undefined while it is
   * fine.
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

  /** Takes what the time since the last call allows off the counts. Called about once a second. */
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
