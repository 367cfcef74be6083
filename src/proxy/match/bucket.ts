import type { Entry } from "./entry.ts";
import { PathIndex, type Slot } from "./paths.ts";
import type { PrefixTable } from "./prefix-table.ts";

/** A route as explanations see it. */
export interface KnownRoute<R> {
  readonly key: string;
  readonly hostnames: readonly string[];
  readonly entries: readonly Entry<R>[];
}

/**
 * The routes of one hostname (`*` for those without); a request never mixes routes of two of them. It is its own index of
 * paths: one object less to reach for a request.
 */
export class Bucket<R extends { readonly key: string }> extends PathIndex<R> {
  readonly hostname: string;
  readonly routes: KnownRoute<R>[] = [];

  constructor(hostname: string, prefixes: PrefixTable<Slot<R>>, owner: number) {
    super(prefixes, owner);
    this.hostname = hostname;
  }

  addRoute(known: KnownRoute<R>): void {
    this.routes.push(known);
    for (const entry of known.entries) this.add(entry);
  }
}
