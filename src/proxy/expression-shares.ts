/**
 * What the expressions of each route use of a worker. Whoever may write a route may write expressions that take their whole budget
 * (`config.expressions.perRequest`) for each request; enough requests would then take the worker from all other routes. So a route has a
 * share of the worker's time, and while others need the worker, requests beyond it are turned away before their expressions run.
 */
import { GatewayError } from "../base/errors.ts";
import type { StepAccount } from "../cel/index.ts";
import type { Count, Metrics } from "../telemetry/metrics.ts";

/** Steps of one millisecond, see `cel/evaluate/budget.ts`. */
const STEPS_PER_MS = 1_000_000;
/** Milliseconds of a share that a route may use at once after it has used less, and that it may owe. */
const BURST_MS = 1000;
/** Milliseconds over which the worker is observed while a route is beyond its share. */
const WINDOW_MS = 250;
/** After so many milliseconds an observation says nothing about now. */
const STALE_MS = 2000;
/** Share of the time for which the event loop is busy when others have to wait. */
const BUSY = 0.75;
/** Requests to other routes in a second that count as traffic: fewer may be probes. */
const OTHERS_PER_SECOND = 5;
/** Milliseconds for which a worker counts as contended, so that a route that is turned away does not come back at once. */
const CONTENDED_MS = 5000;
/** A route without use for so long is forgotten when there are too many. */
const IDLE_MS = 10 * BURST_MS;
const MAX_KNOWN = 1024;
/** Seconds until clients should try again. */
const RETRY_AFTER = ["retry-after", "1"];

export interface ExpressionLimits {
  /** Microseconds that the expressions of one request may use. */
  readonly perRequest: number;
  /** Share of the time of a worker; 0 = off. */
  readonly routeShare: number;
}

/** The time of an event loop so far, in milliseconds. */
interface LoopTime {
  readonly idle: number;
  readonly active: number;
}

export interface ExpressionClock {
  /** Milliseconds. */
  now(): number;
  loopTime(): LoopTime;
}

/** The accounts of one worker. */
export class ExpressionShares {
  readonly limits: ExpressionLimits;
  readonly #metrics: Metrics;
  readonly #clock: ExpressionClock;
  readonly #routes = new Map<string, RouteShare>();
  /** Requests with a route so far. */
  #requests = 0;
  #sweepAt = MAX_KNOWN;

  constructor(limits: ExpressionLimits, metrics: Metrics, clock: ExpressionClock) {
    this.limits = limits;
    this.#metrics = metrics;
    this.#clock = clock;
  }

  /** The account of a route (`<namespace>/<name>`); of expressions without one, `unknown`. */
  of(label: string | undefined): StepAccount {
    const name = label ?? "unknown";
    let route = this.#routes.get(name);
    if (route === undefined) {
      const now = this.#clock.now();
      if (this.#routes.size >= this.#sweepAt) this.#sweep(now);
      route = new RouteShare(name, this.limits.routeShare, now, this.#metrics);
      this.#routes.set(name, route);
    }
    return route;
  }

  /** Called for each request with a route; throws TG_EXPRESSIONS_EXCEEDED if the route has used more than its share. */
  admit(label: string): void {
    this.#requests++;
    // Only routes whose expressions have used something have an account.
    if (this.#routes.size === 0) return;
    const route = this.#routes.get(label);
    if (route === undefined) return;
    route.requests++;
    if (this.limits.routeShare === 0) return;
    const now = this.#clock.now();
    if (route.hasTime(now) || !route.isContended(now, this.#requests, this.#clock)) return;
    route.rejected();
    throw new GatewayError("TG_EXPRESSIONS_EXCEEDED", undefined, undefined, { headers: RETRY_AFTER });
  }

  #sweep(now: number): void {
    for (const [label, route] of this.#routes) if (route.isIdle(now)) this.#routes.delete(label);
    this.#sweepAt = Math.max(MAX_KNOWN, 2 * this.#routes.size);
  }
}

/** What was known of the worker at the beginning of a window. */
interface Observation {
  readonly at: number;
  readonly loop: LoopTime;
  readonly requests: number;
  readonly own: number;
}

class RouteShare implements StepAccount {
  /** Requests to the route since it has an account. */
  requests = 0;
  readonly #label: string;
  readonly #metrics: Metrics;
  readonly #seconds: Count;
  readonly #share: number;
  /** Milliseconds of processor time; negative = owed. */
  #left: number;
  #filledAt: number;
  #observed: Observation | undefined;
  #contendedUntil = 0;

  constructor(label: string, share: number, now: number, metrics: Metrics) {
    this.#label = label;
    this.#share = share;
    this.#left = share * BURST_MS;
    this.#filledAt = now;
    this.#metrics = metrics;
    this.#seconds = metrics.expressionSeconds(label);
  }

  add(steps: number): void {
    const used = steps / STEPS_PER_MS;
    this.#left -= used;
    this.#seconds.count += used / 1000;
  }

  hasTime(now: number): boolean {
    const most = this.#share * BURST_MS;
    const refill = Math.max(0, now - this.#filledAt) * this.#share;
    this.#filledAt = Math.max(now, this.#filledAt);
    this.#left = Math.max(-most, Math.min(most, this.#left + refill));
    return this.#left >= 0;
  }

  /** Whether others wait because the worker is busy: a route that has the worker for itself may use all of it. */
  isContended(now: number, requests: number, clock: ExpressionClock): boolean {
    const before = this.#observed;
    if (before === undefined || now - before.at >= WINDOW_MS) {
      const loop = clock.loopTime();
      this.#observed = { at: now, loop, requests, own: this.requests };
      if (before !== undefined && now - before.at < STALE_MS) {
        const active = loop.active - before.loop.active;
        const busy = active / Math.max(1, active + loop.idle - before.loop.idle) >= BUSY;
        const others = requests - before.requests - (this.requests - before.own);
        if (busy && (others / (now - before.at)) * 1000 >= OTHERS_PER_SECOND) this.#contendedUntil = now + CONTENDED_MS;
      }
    }
    return now < this.#contendedUntil;
  }

  rejected(): void {
    this.#metrics.expressionRejections(this.#label).count++;
  }

  isIdle(now: number): boolean {
    return now - this.#filledAt >= IDLE_MS;
  }
}
