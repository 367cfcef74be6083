/** The entry of this folder: from a request to its route. */
import type { HttpRequest } from "../../http/message/message.ts";
import type { Route } from "../../ir/ir.ts";
import type { Keyed } from "../../ir/precedence.ts";
import { Bucket, type KnownRoute, type Slot } from "./bucket.ts";
import { Patterns, pathOf, type UnknownValues } from "./condition.ts";
import { compileEntry, type Entry, FITS, missOf, patternFits, type Selected } from "./entry.ts";
import { type Explanation, explain, nearestMiss } from "./explain.ts";
import { HostIndex } from "./hosts.ts";
import { PrefixTable } from "./prefix-table.ts";
import type { RouteCandidate } from "./reason.ts";

/** The routes of one listener or route group, compiled; `R` is what the caller keeps for a route. */
export class Router<R extends Keyed> {
  readonly #buckets: HostIndex<Bucket<R>>;

  /** Routers come from `RouterBuilder.finish`. */
  constructor(buckets: HostIndex<Bucket<R>>) {
    this.#buckets = buckets;
  }

  /**
   * The route for a request (docs/lifecycle.md#4-match-route): of the most specific hostname that has any match, the first match
   * in the order of precedence. `host` is lower-case and without port. Time does not grow with routes of other hosts and paths.
   */
  select(request: HttpRequest, host: string): Selected<R> | undefined {
    return this.#buckets.find<HttpRequest, Entry<R>>(host, request, selectIn);
  }

  /** Why `select` chose `selected` for the same request, for traces: time grows with the routes of the host. */
  explain(request: HttpRequest, host: string, selected: Selected<R> | undefined): Explanation<R> {
    return explain(this.#buckets, request, host, selected);
  }

  /** The route nearest to a request for which `select` found none; undefined without routes. */
  nearest(request: HttpRequest, host: string): RouteCandidate<R> | undefined {
    return nearestMiss(this.#buckets, request, host);
  }
}

function selectIn<R extends Keyed>(bucket: Bucket<R>, request: HttpRequest): Entry<R> | undefined {
  return bucket.walk<HttpRequest, Entry<R>>(pathOf(request), ifFits, request);
}

function ifFits<R extends Keyed>(entry: Entry<R>, request: HttpRequest): Entry<R> | undefined {
  return missOf(entry, request) === FITS && patternFits(entry, pathOf(request)) ? entry : undefined;
}

/** Builds a router route by route, each in its place at once, so that a caller may pause between any two. */
export class RouterBuilder<R extends Keyed> {
  readonly #buckets = new HostIndex<Bucket<R>>();
  readonly #patterns: Patterns;
  readonly #prefixes = new PrefixTable<Slot<R>>();
  #bucketCount = 0;

  constructor(unknownValues?: UnknownValues) {
    this.#patterns = new Patterns(unknownValues);
  }

  /**
   * `compiled` is what `select` returns for the route. Throws, and adds nothing, if a regular expression is not valid. The result can
   * be added to the router of the next configuration.
   */
  add(route: Route, compiled: R): KnownRoute<R> {
    const entries = route.matches.map((_, index) => compileEntry(compiled, route.matches, index, this.#patterns));
    const hostnames = route.hostnames.length === 0 ? ["*"] : [...new Set(route.hostnames)];
    const known = { route: compiled, hostnames, entries };
    this.addKnown(known);
    return known;
  }

  /** Adds a route that another router knows already. */
  addKnown(known: KnownRoute<R>): void {
    for (const hostname of known.hostnames)
      this.#buckets.getOrAdd(hostname, () => new Bucket(hostname, this.#prefixes, this.#bucketCount++)).add(known);
  }

  /** The router over everything added, at no cost. The builder must not be used afterwards. */
  finish(): Router<R> {
    return new Router(this.#buckets);
  }
}

export type { KnownRoute, Selected };
