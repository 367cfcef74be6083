import type { Names } from "../../base/sensitive-names.ts";
import type { HttpRequest } from "../../http/message.ts";
import type { Route } from "../../ir/ir.ts";
import { sensitiveHeaders } from "../../trace/redaction.ts";
import { Bucket, type KnownRoute, type Slot } from "./bucket.ts";
import { Patterns } from "./condition.ts";
import { compileEntry, type Entry, type Selected } from "./entry.ts";
import { type Explanation, explain } from "./explain.ts";
import { HostIndex } from "./hosts.ts";
import type { Keyed } from "./precedence.ts";
import { PrefixTable } from "./prefix-table.ts";

const ALWAYS_HIDDEN = sensitiveHeaders([]);

/** The routes of one listener or route group, compiled; `R` is what the caller keeps for a route. */
export class Router<R extends Keyed> {
  readonly #buckets: HostIndex<Bucket<R>>;

  /** Routers come from `RouterBuilder.finish`. */
  constructor(buckets: HostIndex<Bucket<R>>) {
    this.#buckets = buckets;
  }

  /**
   * The route for a request (reference 2.2): of the most specific hostname that has any match, the first match in the order
   * of precedence. `host` is lower-case and without port. Time does not grow with routes of other hosts and paths.
   */
  select(request: HttpRequest, host: string): Selected<R> | undefined {
    return this.#find(request, host);
  }

  /**
   * `select` with the reason for each route, for traces: takes time and memory for every route of the host. Values of the
   * headers in `hidden` (lower-case) are not shown; by default those that are secret everywhere.
   */
  explain(request: HttpRequest, host: string, hidden: Names = ALWAYS_HIDDEN): Explanation<R> {
    return explain(this.#buckets, request, host, this.#find(request, host), hidden);
  }

  #find(request: HttpRequest, host: string): Entry<R> | undefined {
    return this.#buckets.find<HttpRequest, Entry<R>>(host, request, selectIn);
  }
}

function selectIn<R extends Keyed>(bucket: Bucket<R>, request: HttpRequest): Entry<R> | undefined {
  return bucket.select(request);
}

/** Builds a router route by route, each in its place at once, so that a caller may pause between any two. */
export class RouterBuilder<R extends Keyed> {
  readonly #buckets = new HostIndex<Bucket<R>>();
  readonly #patterns = new Patterns();
  readonly #prefixes = new PrefixTable<Slot<R>>();
  #bucketCount = 0;

  /**
   * `compiled` is what `select` returns for the route. Throws, and adds nothing, if a regular expression is not valid. The result can
   * be added to the router of the next configuration.
   */
  add(route: Route, compiled: R): KnownRoute<R> {
    const entries = route.matches.map((match, index) => compileEntry(compiled, match, index, this.#patterns));
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

export type { Explanation, KnownRoute, Selected };
