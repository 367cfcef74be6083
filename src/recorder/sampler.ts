import { digestOf, type SampledRequest } from "./sample.ts";
import type { SampleRing } from "./sample-ring.ts";

/** The first requests of each route in a minute are all sampled, so that rare routes have samples too, */
const FIRST_OF_ROUTE = 16;
const ROUTE_PERIOD_MS = 60_000;
/** but at most so many of all routes in a second. */
const MAX_PER_SECOND = 100;
/** Milliseconds of traffic that a full ring should cover at least, if rare routes leave room for that. */
const SPAN_MS = 600_000;
/** Bytes of a sample, until the size of some is known. */
const USUAL_BYTES = 600;

/** What is known of the samples of one route. */
export class RouteSamples {
  /** Requests since the last sample. */
  pending = 0;
  /** `performance.now()` ms at which the current period began, and samples in it. */
  since = Number.NEGATIVE_INFINITY;
  taken = 0;
}

/**
 * Chooses the requests of one worker that become samples, and writes them. Every request is counted, and each sample says how many of its
 * route it stands for.
 */
export class Sampler {
  readonly #ring: SampleRing;
  readonly #key: Uint8Array;
  #second = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #nextAt = Number.NEGATIVE_INFINITY;
  #bytes = USUAL_BYTES;

  /** `key`: for the digests of secrets. */
  constructor(ring: SampleRing, key: Uint8Array) {
    this.#ring = ring;
    this.#key = key;
  }

  /** Counts a request that arrived at `now`, `performance.now()` ms; returns how many it stands for if it is to be sampled, else 0. */
  weightOf(route: RouteSamples, now: number): number {
    route.pending++;
    if (now - route.since >= ROUTE_PERIOD_MS) {
      route.since = now;
      route.taken = 0;
    }
    if (route.taken >= FIRST_OF_ROUTE && now < this.#nextAt) return 0;
    if (now - this.#second >= 1000) {
      this.#second = now;
      this.#taken = 0;
    }
    if (this.#taken >= MAX_PER_SECOND) return 0;
    this.#taken++;
    if (route.taken >= FIRST_OF_ROUTE) this.#nextAt = now + (SPAN_MS * this.#bytes) / this.#ring.bytes;
    route.taken++;
    const weight = route.pending;
    route.pending = 0;
    return weight;
  }

  /** Writes a sample of the route. A smaller one stands for those that are too large for the ring. */
  write(route: RouteSamples, sample: SampledRequest): void {
    const entry = Buffer.from(JSON.stringify(sample));
    // A moving average.
    this.#bytes += (entry.length - this.#bytes) / 64;
    if (!this.#ring.add(entry)) route.pending += sample.weight;
  }

  /** See `digestOf`. */
  digestOf(name: string, value: string): string {
    return digestOf(this.#key, name, value);
  }
}
