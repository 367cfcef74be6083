import type { TrafficPoint } from "../admin/plane/answers.ts";
import type { Reason } from "../base/errors.ts";
import { reasonNumber } from "../recorder/codes.ts";
import { isFailedResponse } from "../recorder/recorder.ts";
import { REQUEST_LABELS } from "../telemetry/metric-table.ts";
import type { RequestVisitor } from "../telemetry/metrics.ts";
import { Traffic } from "../telemetry/traffic.ts";

/** Milliseconds between two points, which lie on multiples of it: those of several gateways fit together. */
export const STEP = 10_000;
/** The last 15 minutes. */
const POINTS = 90;

/** What counts requests; the supervisor of workers. */
export interface Counted {
  eachRequestSeries(visit: RequestVisitor): void;
}

/** All traffic until a moment: wall-clock time, a clock that never jumps, and what the gateway has counted by then. */
interface Reading {
  readonly at: number;
  readonly clock: number;
  readonly total: Traffic;
}

/**
 * The requests of the last 15 minutes, a point for every 10 s: reading 30,000 series, those of 10,000 routes, takes 9 ms of the main
 * thread. While that is blocked or suspended, there are no points, and the next one has the requests of the whole time.
 */
export class TrafficHistory {
  readonly #counted: Counted;
  readonly #points: TrafficPoint[] = [];
  #last: Reading;
  #timer: NodeJS.Timeout | undefined;

  /** `now`: epoch ms; `clock`: `performance.now()` ms. */
  constructor(counted: Counted, now = Date.now(), clock = performance.now()) {
    this.#counted = counted;
    this.#last = { at: now, clock, total: totalOf(counted) };
  }

  /** Adds a point whenever one is due. */
  start(): void {
    const left = STEP - (Date.now() % STEP);
    this.#timer = setTimeout(() => {
      this.add();
      this.start();
    }, left).unref();
  }

  /** Adds the point of what happened since the last one. */
  add(now = Date.now(), clock = performance.now()): void {
    const reading = { at: now, clock, total: totalOf(this.#counted) };
    const point = pointOf(this.#last, reading);
    this.#last = reading;
    // Clocks may be set back.
    while ((this.#points.at(-1)?.time ?? "") >= point.time) this.#points.pop();
    this.#points.push(point);
    const oldest = new Date(now - POINTS * STEP).toISOString();
    while ((this.#points[0]?.time ?? oldest) < oldest) this.#points.shift();
  }

  /** The oldest first; the last one, which is not over yet, has the time since the one before. */
  points(now = Date.now(), clock = performance.now()): readonly TrafficPoint[] {
    return [...this.#points, pointOf(this.#last, { at: now, clock, total: totalOf(this.#counted) })];
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}

function pointOf(from: Reading, to: Reading): TrafficPoint {
  const traffic = to.total.since(from.total);
  const [p50, p99] = [traffic.quantile(0.5), traffic.quantile(0.99)];
  return {
    time: new Date(to.at).toISOString(),
    seconds: (to.clock - from.clock) / 1000,
    requests: traffic.requests,
    errors: traffic.errors,
    ...(p50 !== undefined && p99 !== undefined && { p50, p99 }),
  };
}

function totalOf(counted: Counted): Traffic {
  const total = new Traffic();
  counted.eachRequestSeries((labels, traffic) => total.add(traffic, isFailed(labels)));
  return total;
}

const STATUS = REQUEST_LABELS.indexOf("status");
const REASON = REQUEST_LABELS.indexOf("reason");

/** Whether all requests of a series have failed, or were rejected. Of the others, calls of gRPC may have failed too. */
export function isFailed(labels: readonly string[]): boolean {
  return isFailedResponse(reasonNumber(labels[REASON] as Reason), Number(labels[STATUS]));
}
