/**
 * Accounts for the worker time that the expressions of each route use. The author of a route may write expressions that use their whole
 * budget (`config.expressions.perRequest`) for each request; with enough requests they would block all other routes of the worker. So a
 * route has a share of the worker's time, and while others need the worker, requests beyond the share are turned away before their
 * expressions run. All routes of a namespace also have a share together, because the author of one route there may write thirty.
 */
import { GatewayError } from "../../base/errors.ts";
import type { StepAccount } from "../../cel/index.ts";
import type { Count, Metrics } from "../../telemetry/metrics.ts";

/** Steps of one millisecond, see `cel/evaluate/budget.ts`. */
const STEPS_PER_MS = 1_000_000;
/** The share of a namespace, as a multiple of that of a route. */
const NAMESPACE_SHARES = 3;
/** Milliseconds of its share that a route can save up, and that it can owe. */
const BURST_MS = 1000;
/** Milliseconds over which the worker is observed while a route is beyond its share. */
const WINDOW_MS = 250;
/** An observation is outdated after this many milliseconds. */
const STALE_MS = 2000;
/** Share of time that the event loop is busy from which on others have to wait. */
const BUSY = 0.75;
/** Requests to other routes in a second that count as traffic: fewer may be probes. */
const OTHERS_PER_SECOND = 5;
/** Milliseconds for which a worker counts as contended, so that a route that is turned away does not come back at once. */
const CONTENDED_MS = 5000;
/** Milliseconds after which an unused route may be forgotten if there are too many. */
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
  /** By label. Empty until expressions of any route have used something; then all routes that get requests have an account. */
  readonly #accounts = new Map<string, Account>();
  readonly #namespaces = new Map<string, Share>();
  /** Requests with a route so far. */
  #requests = 0;
  #sweepAt = MAX_KNOWN;

  constructor(limits: ExpressionLimits, metrics: Metrics, clock: ExpressionClock) {
    this.limits = limits;
    this.#metrics = metrics;
    this.#clock = clock;
  }

  /** The account of a route (`<namespace>/<name>`); of expressions without one, `unknown`. */
  of(label = "unknown"): StepAccount {
    return this.#accounts.get(label) ?? this.#open(label);
  }

  /** Called for each request with a route; throws TG_EXPRESSIONS_EXCEEDED if the route, or its namespace, has used more than its share. */
  admit(label: string): void {
    this.#requests++;
    if (this.#accounts.size === 0) return;
    const account = this.#accounts.get(label) ?? this.#open(label);
    const { route, namespace } = account;
    route.requests++;
    namespace.requests++;
    // A route without expressions is not turned away because of others' expressions.
    if (this.limits.routeShare === 0 || !account.used) return;
    const now = this.#clock.now();
    if (!this.#isBeyond(route, now) && !this.#isBeyond(namespace, now)) return;
    this.#metrics.count("expression_rejected_total", label).count++;
    throw new GatewayError("TG_EXPRESSIONS_EXCEEDED", undefined, undefined, { headers: RETRY_AFTER });
  }

  #isBeyond(share: Share, now: number): boolean {
    return !share.hasTime(now) && share.isContended(now, this.#requests, this.#clock);
  }

  #open(label: string): Account {
    const now = this.#clock.now();
    if (this.#accounts.size >= this.#sweepAt) this.#sweep(now);
    const name = label.slice(0, Math.max(0, label.indexOf("/")));
    let namespace = this.#namespaces.get(name);
    if (namespace === undefined) {
      namespace = new Share(NAMESPACE_SHARES * this.limits.routeShare, now);
      this.#namespaces.set(name, namespace);
    }
    const account = new Account(label, new Share(this.limits.routeShare, now), namespace, this.#metrics);
    this.#accounts.set(label, account);
    return account;
  }

  #sweep(now: number): void {
    const namespaces = new Set<Share>();
    for (const [label, { route, namespace }] of this.#accounts)
      if (route.isIdle(now)) this.#accounts.delete(label);
      else namespaces.add(namespace);
    for (const [name, share] of this.#namespaces) if (!namespaces.has(share)) this.#namespaces.delete(name);
    this.#sweepAt = Math.max(MAX_KNOWN, 2 * this.#accounts.size);
  }
}

/** The account that the expressions of one route are charged to. */
class Account implements StepAccount {
  readonly route: Share;
  readonly namespace: Share;
  readonly #label: string;
  readonly #metrics: Metrics;
  #seconds: Count | undefined;

  constructor(label: string, route: Share, namespace: Share, metrics: Metrics) {
    this.route = route;
    this.namespace = namespace;
    this.#label = label;
    this.#metrics = metrics;
  }

  /** Whether its expressions have used anything. */
  get used(): boolean {
    return this.#seconds !== undefined;
  }

  add(steps: number): void {
    const ms = steps / STEPS_PER_MS;
    this.route.use(ms);
    this.namespace.use(ms);
    this.#seconds ??= this.#metrics.count("expression_seconds_total", this.#label);
    this.#seconds.count += ms / 1000;
  }
}

/** The state of the worker at the beginning of a window. */
interface Observation {
  readonly at: number;
  readonly loop: LoopTime;
  readonly requests: number;
  readonly own: number;
}

/** The time that a route or a namespace may use. */
class Share {
  /** Since the account exists. */
  requests = 0;
  readonly #share: number;
  /** Milliseconds of processor time; negative = owed. */
  #left: number;
  #filledAt: number;
  #observed: Observation | undefined;
  #contendedUntil = 0;

  constructor(share: number, now: number) {
    this.#share = Math.min(1, share);
    this.#left = this.#share * BURST_MS;
    this.#filledAt = now;
  }

  use(ms: number): void {
    this.#left -= ms;
  }

  hasTime(now: number): boolean {
    const most = this.#share * BURST_MS;
    const refill = Math.max(0, now - this.#filledAt) * this.#share;
    this.#filledAt = Math.max(now, this.#filledAt);
    this.#left = Math.max(-most, Math.min(most, this.#left + refill));
    return this.#left >= 0;
  }

  /** Whether others wait because the worker is busy: a route that has the worker to itself may use all of it. */
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

  isIdle(now: number): boolean {
    return now - this.#filledAt >= IDLE_MS;
  }
}
