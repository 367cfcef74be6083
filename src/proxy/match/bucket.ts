/** The routes of one host name, found by path in the order of precedence. */
import { compareMatches, type Keyed, withoutTrailingSlashes } from "../../ir/precedence.ts";
import type { Entry } from "./entry.ts";
import type { PrefixTable } from "./prefix-table.ts";

/** A route as explanations see it. */
export interface KnownRoute<R> {
  readonly route: R;
  readonly hostnames: readonly string[];
  readonly entries: readonly Entry<R>[];
}
/** The entries of one path: one alone, or several in order. */
export type Slot<R> = Entry<R> | Entry<R>[];

/** `argument` is passed on so that no closure is needed. */
type Visit<R, A, T> = (entry: Entry<R>, argument: A) => T | undefined;

/** Bits of a small integer that V8 keeps without a box. */
const BITS = 30;

/**
 * The routes of one hostname (`*` for those without); a request never mixes routes of two hostnames. Paths are in maps, looked up
 * from the longest prefix of the request's path to the shortest, so the time depends on the path and not on the number of routes;
 * only regular expressions are tried one by one. With many thousand routes the cost is cache misses, so a look-up touches little
 * memory: a bit mask skips lengths that no prefix has, prefixes are in one table for all hostnames, and a path with one entry needs
 * no list.
 */
export class Bucket<R extends Keyed> {
  // In the order of use, so a plain request reads one cache line.
  /** Bit `length % BITS` is set for each prefix but `/`. */
  #lengths = 0;
  #exact: Map<string, Slot<R>> | undefined;
  #regexes: Entry<R>[] | undefined;
  readonly #prefixes: PrefixTable<Slot<R>>;
  /** The owner of this bucket's prefixes in the table. */
  readonly #owner: number;
  /** The entries of the prefix `/`, which most hosts have. */
  #root: Slot<R> | undefined;

  readonly hostname: string;
  /** For explanations; choosing a route does not read them. */
  readonly routes: KnownRoute<R>[] = [];

  /** `prefixes` is shared by the buckets of a router; `owner` tells them apart. */
  constructor(hostname: string, prefixes: PrefixTable<Slot<R>>, owner: number) {
    this.hostname = hostname;
    this.#prefixes = prefixes;
    this.#owner = owner;
  }

  add(route: KnownRoute<R>): void {
    this.routes.push(route);
    for (const entry of route.entries) this.#add(entry);
  }

  #add(entry: Entry<R>): void {
    const { type, value } = entry.path;
    if (type === "regex") {
      this.#regexes ??= [];
      insertSorted(this.#regexes, entry);
    } else if (type === "exact") {
      this.#exact ??= new Map();
      this.#exact.set(value, joined(this.#exact.get(value), entry));
    } else {
      const prefix = withoutTrailingSlashes(value);
      if (prefix === "") this.#root = joined(this.#root, entry);
      else if (prefix.startsWith("/")) {
        this.#prefixes.set(this.#owner, prefix, joined(this.#prefixes.get(this.#owner, prefix), entry));
        this.#lengths |= 1 << (prefix.length % BITS);
      }
    }
  }

  /**
   * Visits the entries whose path fits in the order of precedence, until `visit` returns a value. Of a regular expression only the literal
   * beginning is compared: `visit` has to test the pattern, which costs most.
   */
  walk<A, T>(path: string, visit: Visit<R, A, T>, argument: A): T | undefined {
    if (this.#exact !== undefined) {
      const found = visitSlot(this.#exact.get(path), visit, argument);
      if (found !== undefined) return found;
    }
    if (this.#regexes !== undefined) return this.#walkWithRegexes(this.#regexes, path, visit, argument);
    if (this.#lengths !== 0) {
      for (let end = boundary(path, path.length); end > 0; end = boundary(path, path.lastIndexOf("/", end - 1))) {
        const found = visitSlot(this.#prefixOf(path, end), visit, argument);
        if (found !== undefined) return found;
      }
    }
    return path.startsWith("/") ? visitSlot(this.#root, visit, argument) : undefined;
  }

  /** From longer to shorter prefixes; regular expressions that are longer than a prefix are visited before it. */
  #walkWithRegexes<A, T>(
    regexes: readonly Entry<R>[],
    path: string,
    visit: Visit<R, A, T>,
    argument: A,
  ): T | undefined {
    let next = 0;
    for (let end = boundary(path, path.length); ; end = boundary(path, path.lastIndexOf("/", end - 1))) {
      const head = end > 0 ? this.#prefixOf(path, end) : path.startsWith("/") ? this.#root : undefined;
      for (const entry of listOf(head)) {
        for (; next < regexes.length; next++) {
          const regex = regexes[next] as Entry<R>;
          if (regex.length <= entry.length) break;
          const found = path.startsWith(regex.literal) ? visit(regex, argument) : undefined;
          if (found !== undefined) return found;
        }
        const found = visit(entry, argument);
        if (found !== undefined) return found;
      }
      if (end <= 0) break;
    }
    for (; next < regexes.length; next++) {
      const regex = regexes[next] as Entry<R>;
      const found = path.startsWith(regex.literal) ? visit(regex, argument) : undefined;
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #prefixOf(path: string, end: number): Slot<R> | undefined {
    if (((this.#lengths >>> (end % BITS)) & 1) === 0) return undefined;
    return this.#prefixes.get(this.#owner, path.slice(0, end));
  }
}

const SLASH = 0x2f;

/** `end` without the slashes before it: those at the end of a prefix do not count. */
function boundary(path: string, end: number): number {
  while (end > 0 && path.charCodeAt(end - 1) === SLASH) end--;
  return end;
}

function joined<R extends Keyed>(slot: Slot<R> | undefined, entry: Entry<R>): Slot<R> {
  if (slot === undefined) return entry;
  const list = Array.isArray(slot) ? slot : [slot];
  insertSorted(list, entry);
  return list;
}

function visitSlot<R, A, T>(slot: Slot<R> | undefined, visit: Visit<R, A, T>, argument: A): T | undefined {
  if (slot === undefined) return undefined;
  if (!Array.isArray(slot)) return visit(slot, argument);
  for (const entry of slot) {
    const found = visit(entry, argument);
    if (found !== undefined) return found;
  }
  return undefined;
}

function listOf<R extends Keyed>(slot: Slot<R> | undefined): readonly Entry<R>[] {
  if (slot === undefined) return [];
  return Array.isArray(slot) ? slot : [slot];
}

/** Puts `entry` at its place in a sorted list, after its equals. */
function insertSorted<R extends Keyed>(list: Entry<R>[], entry: Entry<R>): void {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareMatches(list[middle] as Entry<R>, entry) <= 0) low = middle + 1;
    else high = middle;
  }
  list.splice(low, 0, entry);
}
