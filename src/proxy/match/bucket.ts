import type { Entry } from "./entry.ts";
import { PathIndex } from "./paths.ts";

/** A route as explanations see it. */
export interface KnownRoute<R> {
  readonly key: string;
  readonly hostnames: readonly string[];
  readonly entries: readonly Entry<R>[];
}

/** The routes of one hostname (`*` for those without); a request never mixes routes of two of them. */
export class Bucket<R extends { readonly key: string }> {
  readonly hostname: string;
  readonly paths = new PathIndex<R>();
  readonly routes: KnownRoute<R>[] = [];

  constructor(hostname: string) {
    this.hostname = hostname;
  }

  add(known: KnownRoute<R>): void {
    this.routes.push(known);
    for (const entry of known.entries) this.paths.add(entry);
  }
}
