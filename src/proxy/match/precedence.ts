/** Which of two matches goes first, and by which rule. */
import type { Entry } from "./entry.ts";

/** A route, as far as its precedence goes. */
export interface Keyed {
  readonly key: string;
  /** `<namespace>/<name>`, with which keys begin. Compared before the key, in which `a-b.00` would sort before `a.00`. */
  readonly label?: string;
  /** Seconds since 1970. */
  readonly createdAt?: number;
}

type Compare = (a: Entry<Keyed>, b: Entry<Keyed>) => number;

/**
 * Precedence within one hostname (docs/lifecycle.md#4-match-route): the first rule that distinguishes two matches decides;
 * negative = `a` goes first.
 */
const RULES = [
  { because: "exact path", compare: (a, b) => rank(b.path.type === "exact") - rank(a.path.type === "exact") },
  { because: "longer path", compare: (a, b) => b.length - a.length },
  {
    because: "path prefix before regex",
    compare: (a, b) => rank(a.path.type === "regex") - rank(b.path.type === "regex"),
  },
  { because: "has a method", compare: (a, b) => rank(b.method !== undefined) - rank(a.method !== undefined) },
  { because: "more headers", compare: (a, b) => b.headers.length - a.headers.length },
  { because: "more query parameters", compare: (a, b) => b.query.length - a.query.length },
  { because: "older route", compare: (a, b) => (a.route.createdAt ?? 0) - (b.route.createdAt ?? 0) },
  { because: "route name sorts first", compare: (a, b) => compareText(a.route.label ?? "", b.route.label ?? "") },
  { because: "route key sorts first", compare: (a, b) => compareText(a.route.key, b.route.key) },
  { because: "earlier match", compare: (a, b) => a.matchIndex - b.matchIndex },
] as const satisfies readonly { readonly because: string; readonly compare: Compare }[];

export type PrecedenceRule = (typeof RULES)[number]["because"] | "added earlier";

/** Order of two matches; 0 only for matches of two routes with the same key. */
function compareEntries(a: Entry<Keyed>, b: Entry<Keyed>): number {
  for (const rule of RULES) {
    const order = rule.compare(a, b);
    if (order !== 0) return order;
  }
  return 0;
}

/** Why `winner` goes before `loser`. */
export function whyBefore(winner: Entry<Keyed>, loser: Entry<Keyed>): PrecedenceRule {
  return RULES.find((rule) => rule.compare(winner, loser) !== 0)?.because ?? "added earlier";
}

/** Puts `entry` at its place in a sorted list, after its equals. */
export function insertSorted<R extends Keyed>(list: Entry<R>[], entry: Entry<R>): void {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareEntries(list[middle] as Entry<R>, entry) <= 0) low = middle + 1;
    else high = middle;
  }
  list.splice(low, 0, entry);
}

function rank(yes: boolean): number {
  return yes ? 1 : 0;
}

/** By UTF-16 code units, whatever the locale. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
