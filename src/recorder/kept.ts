import { RouteSamples } from "./sampler.ts";

/**
 * What is kept beyond the turn of the ring: failures, rejections and requests that are slow for their route, a bounded number a second, and
 * each route with a fair share of the room.
 */

/** Records of one route and reason that are kept in one second. */
const PER_SECOND = 20;
/** A request is slow if it takes so many times as long as those of its route usually do, */
const SLOW_FACTOR = 4;
/** and at least so many milliseconds: below, it is the machine that was busy. */
const SLOW_AT_LEAST = 5;
/** Requests of a route before any is called slow. */
const WARM_UP = 32;
/** The weight of a request in the moving average of its route. */
const WEIGHT = 1 / 32;

/** The kept records of one route and one reason. */
class KeptClass {
  readonly route: RouteHistory;
  /** Slots in the order in which they were written, from `#first` on. */
  #slots: number[] = [];
  #first = 0;
  /** `performance.now()` ms at which the current second began, and records kept in it. */
  #since = Number.NEGATIVE_INFINITY;
  #taken = 0;

  constructor(route: RouteHistory) {
    this.route = route;
  }

  get size(): number {
    return this.#slots.length - this.#first;
  }

  /** The slot of the newest record; undefined if no record is left. */
  get newest(): number | undefined {
    return this.size === 0 ? undefined : this.#slots.at(-1);
  }

  /** Whether another record may be kept at `now`. */
  admits(now: number): boolean {
    if (now - this.#since >= 1000) {
      this.#since = now;
      this.#taken = 0;
    }
    return this.#taken++ < PER_SECOND;
  }

  add(slot: number): void {
    this.#slots.push(slot);
  }

  /** Gives up the slot of the oldest record. */
  giveUp(): number | undefined {
    const slot = this.#slots[this.#first++];
    if (this.#first > 64 && this.#first * 2 > this.#slots.length) {
      this.#slots = this.#slots.slice(this.#first);
      this.#first = 0;
    }
    return slot;
  }
}

/** What is known of one route's requests: how long they take, and which were kept or sampled. */
export class RouteHistory {
  readonly samples = new RouteSamples();
  #average = 0;
  #requests = 0;
  readonly #classes = new Map<number, KeptClass>();
  /** Records of all classes. */
  kept = 0;

  /** Takes the duration of a request in milliseconds into the average; true if it is slow for this route. */
  isSlow(duration: number): boolean {
    const average = this.#average;
    // The first requests have more weight, so that the average does not begin with the first of them.
    const weight = this.#requests < WARM_UP ? 1 / (this.#requests + 1) : WEIGHT;
    this.#average = average + (duration - average) * weight;
    this.#requests++;
    return this.#requests > WARM_UP && duration > average * SLOW_FACTOR && duration > SLOW_AT_LEAST;
  }

  class(reason: number): KeptClass {
    let found = this.#classes.get(reason);
    if (found === undefined) {
      found = new KeptClass(this);
      this.#classes.set(reason, found);
    }
    return found;
  }

  get largest(): KeptClass | undefined {
    let largest: KeptClass | undefined;
    for (const each of this.#classes.values()) if (each.size > (largest?.size ?? 0)) largest = each;
    return largest;
  }
}

/**
 * Chooses the slots of kept records. When all are taken, the route with the most gives up its oldest record of the reason
 * with the most. So whoever causes many failures on one route does not displace the few of another.
 */
export class KeptSlots {
  readonly #slots: number;
  /** Slots that have not been used yet, the next one last. */
  readonly #free: number[];
  /** Routes by the number of their records. */
  readonly #routes: Set<RouteHistory>[] = [];

  /** `used`: slots that hold records already, for which `add` follows. */
  constructor(slots: number, used: ReadonlySet<number>) {
    this.#slots = slots;
    this.#free = [];
    for (let slot = slots - 1; slot >= 0; slot--) if (!used.has(slot)) this.#free.push(slot);
  }

  /** Chooses a slot for a record of this class. */
  claim(owner: KeptClass): number {
    const slot = this.#free.pop() ?? this.#giveUp() ?? this.#slots - 1;
    this.add(owner, slot);
    return slot;
  }

  add(owner: KeptClass, slot: number): void {
    owner.add(slot);
    this.#move(owner.route, 1);
  }

  #giveUp(): number | undefined {
    // The last set is never empty, so the first of its routes is the one that has been there longest.
    const fullest = this.#routes.at(-1)?.values().next().value;
    const slot = fullest?.largest?.giveUp();
    if (fullest !== undefined) this.#move(fullest, -1);
    return slot;
  }

  #move(route: RouteHistory, by: 1 | -1): void {
    this.#routes[route.kept]?.delete(route);
    route.kept += by;
    if (route.kept > 0) {
      const set = this.#routes[route.kept] ?? new Set();
      this.#routes[route.kept] = set;
      set.add(route);
    }
    while (this.#routes.length > 0 && (this.#routes.at(-1)?.size ?? 0) === 0) this.#routes.pop();
  }
}
