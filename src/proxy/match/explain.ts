import type { Names } from "../../base/sensitive-names.ts";
import type { HttpRequest } from "../../http/message.ts";
import type { Candidate } from "../../trace/events.ts";
import type { Bucket, KnownRoute } from "./bucket.ts";
import type { Entry, Selected } from "./entry.ts";
import type { HostIndex } from "./hosts.ts";
import { cut, findMiss, type Miss } from "./miss.ts";
import { compareEntries, type Keyed, whyBefore } from "./precedence.ts";

/** A route choice with its reasons. */
export interface Explanation<R> {
  readonly selected: Selected<R> | undefined;
  /** Sorted keys of the routes whose hostnames fit. */
  readonly evaluatedRoutes: string[];
  /**
   * The evaluated routes, then some of other hosts: the selected one first, then those that matched too, then the nearest
   * misses.
   */
  readonly candidates: Candidate[];
  /** Evaluated routes that are not among the candidates. */
  readonly omitted: number;
}

interface Evaluation extends Candidate {
  /** Nearness to being chosen. */
  readonly stage: number;
}

const MATCHED = 4;
const SELECTED = 5;
/** Evaluated routes listed as candidates: an event must not have the size of the configuration. */
const MAX_CANDIDATES = 200;
/** Routes of other hosts listed as candidates. */
const MAX_OTHER_HOSTS = 50;
/** Hostnames named in one reason. */
const MAX_NAMES = 5;

/** Explains for each route why it was chosen or not. `winner` is what `select` returned for the same request. */
export function explain<R extends Keyed>(
  buckets: HostIndex<Bucket<R>>,
  request: HttpRequest,
  host: string,
  winner: Entry<R> | undefined,
  hidden: Names,
): Explanation<R> {
  const fitting = buckets.all(host);
  const winnerBucket = fitting.find((bucket) => bucket.routes.some((known) => isWinner(known, winner)));
  const seen = new Set<KnownRoute<R>>();
  const evaluations: Evaluation[] = [];
  for (const bucket of fitting) {
    for (const known of bucket.routes) {
      if (seen.has(known)) continue;
      seen.add(known);
      const evaluation = evaluate(known, request, hidden);
      if (isWinner(known, winner))
        evaluations.push({ route: known.route.key, matched: true, reason: "selected", stage: SELECTED });
      else if ("stage" in evaluation) evaluations.push({ route: known.route.key, matched: false, ...evaluation });
      else
        evaluations.push({
          route: known.route.key,
          matched: true,
          reason: beaten(evaluation, bucket, winner, winnerBucket),
          stage: MATCHED,
        });
    }
  }
  evaluations.sort((a, b) => b.stage - a.stage);
  const listed = evaluations.slice(0, MAX_CANDIDATES);
  const candidates = listed.map(({ route, matched, reason }): Candidate => ({ route, matched, reason }));
  return {
    selected: winner,
    evaluatedRoutes: [...new Set(evaluations.map((evaluation) => evaluation.route))].sort(),
    candidates: candidates.concat(ofOtherHosts(buckets, seen, host)),
    omitted: evaluations.length - listed.length,
  };
}

function isWinner<R>(known: KnownRoute<R>, winner: Entry<R> | undefined): boolean {
  return winner !== undefined && known.entries.includes(winner);
}

/** The best match of a route that fits, or else the nearest miss. */
function evaluate<R extends Keyed>(known: KnownRoute<R>, request: HttpRequest, hidden: Names): Entry<R> | Miss {
  let best: Entry<R> | undefined;
  let nearest: Miss = { stage: 0, reason: "path: the route has no matches" };
  let misses = 0;
  for (const entry of known.entries) {
    const miss = findMiss(entry, request, hidden);
    if (miss === undefined) {
      if (best === undefined || compareEntries(entry, best) < 0) best = entry;
    } else if (misses++ === 0 || miss.stage > nearest.stage) {
      nearest = miss;
    }
  }
  if (best !== undefined) return best;
  return misses > 1 ? { ...nearest, reason: `${nearest.reason} (nearest of ${misses} matches)` } : nearest;
}

function beaten<R extends Keyed>(
  entry: Entry<R>,
  bucket: Bucket<R>,
  winner: Entry<R> | undefined,
  winnerBucket: Bucket<R> | undefined,
): string {
  // A fitting route always has a winner, which the types cannot express.
  if (winner === undefined || winnerBucket === undefined) return "precedence: another route is more specific";
  const because =
    bucket === winnerBucket ? whyBefore(winner, entry) : `hostname ${winnerBucket.hostname} before ${bucket.hostname}`;
  return `precedence: ${winner.route.key} is more specific (${because})`;
}

function ofOtherHosts<R extends Keyed>(
  buckets: HostIndex<Bucket<R>>,
  seen: Set<KnownRoute<R>>,
  host: string,
): Candidate[] {
  const others: Candidate[] = [];
  for (const bucket of buckets.values()) {
    for (const known of bucket.routes) {
      if (others.length === MAX_OTHER_HOSTS) return others;
      if (seen.has(known)) continue;
      seen.add(known);
      others.push({
        route: known.route.key,
        matched: false,
        reason: `host: ${cut(host)} does not match ${names(known.hostnames)}`,
      });
    }
  }
  return others;
}

function names(hostnames: readonly string[]): string {
  const more = hostnames.length - MAX_NAMES;
  const shown = hostnames.slice(0, MAX_NAMES).map(cut).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}
