/** Why a route was chosen, and why the others were not. */
import { GatewayError } from "../../base/errors.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import { type Keyed, whyBefore } from "../../ir/precedence.ts";
import type { Bucket, KnownRoute } from "./bucket.ts";
import { pathOf } from "./condition.ts";
import { type Entry, FITS, missOf, patternFits, type Selected } from "./entry.ts";
import type { HostIndex } from "./hosts.ts";
import { type Because, missReason, type RouteCandidate, type RouteReason } from "./reason.ts";

/** A route choice with its reasons. */
export interface Explanation<R> {
  readonly selected: Selected<R> | undefined;
  /** Sorted keys of the routes whose hostnames fit: all of them, or the nearest MAX_EVALUATED. */
  readonly evaluatedRoutes: string[];
  /** How many others have hostnames that fit. */
  readonly omitted: number;
  /** The nearest of the evaluated routes, the selected one first, then those that match too; then some of other hosts. */
  readonly candidates: RouteCandidate<R>[];
}

/** An event must not have the size of the configuration: 10,000 routes with reasons are megabytes. */
const MAX_EVALUATED = 100;
const MAX_CANDIDATES = 20;
/** Routes of other hosts listed as candidates. */
const MAX_OTHER_HOSTS = 10;
/** Takes about 30 µs. */
const MAX_COMPARED = 1000;

/** A route with the match that fits, or with the one that is nearest to it. */
interface Finding<R> {
  readonly route: R;
  readonly bucket: Bucket<R & Keyed>;
  entry: Entry<R>;
  nearness: number;
  /** What `missOf` returned, or why it threw. */
  miss: number | GatewayError;
}

// Nearness of a finding: how many clauses a request passes. Routes with another path come after these.
const SELECTED = 5;
const MATCHED = 4;

/** Explains why routes were chosen or not. `winner` is what `select` returned for the same request. */
export function explain<R extends Keyed>(
  buckets: HostIndex<Bucket<R>>,
  request: HttpRequest,
  host: string,
  winner: Selected<R> | undefined,
): Explanation<R> {
  const fitting = buckets.all(host);
  const findings = withFittingPath(fitting, request, winner);
  const { total, nearest } = withOtherPath(fitting, findings, pathOf(request), MAX_EVALUATED - findings.size);
  const sorted = [...findings.values()].sort((a, b) => b.nearness - a.nearness).slice(0, MAX_EVALUATED);
  const best = winner === undefined ? undefined : findings.get(winner.route);
  const candidates = [
    ...sorted.slice(0, MAX_CANDIDATES).map((finding) => candidateOf(finding, request, best)),
    ...nearest.slice(0, Math.max(0, MAX_CANDIDATES - sorted.length)).map((near) => otherPath(near, request)),
    ...ofOtherHosts(buckets, fitting, host),
  ];
  const evaluated = new Set([...sorted.map(({ route }) => route.key), ...nearest.map(({ known }) => known.route.key)]);
  return { selected: winner, evaluatedRoutes: [...evaluated].sort(), omitted: total - evaluated.size, candidates };
}

/**
 * The nearest of the routes if none fits; undefined without routes. It runs for each such request that is logged, so of the routes with
 * other paths it compares the first MAX_COMPARED.
 */
export function nearestMiss<R extends Keyed>(
  buckets: HostIndex<Bucket<R>>,
  request: HttpRequest,
  host: string,
): RouteCandidate<R> | undefined {
  const fitting = buckets.all(host);
  let best: Finding<R> | undefined;
  for (const finding of withFittingPath(fitting, request, undefined).values())
    if (best === undefined || finding.nearness > best.nearness) best = finding;
  if (best !== undefined) return candidateOf(best, request, undefined);
  const [near] = withOtherPath(fitting, new Map(), pathOf(request), 1, MAX_COMPARED).nearest;
  if (near !== undefined) return otherPath(near, request);
  return ofOtherHosts(buckets, fitting, host, 1)[0];
}

/** The routes that have a match with the path of the request, by the same walk as `select`. */
function withFittingPath<R extends Keyed>(
  fitting: readonly Bucket<R>[],
  request: HttpRequest,
  winner: Selected<R> | undefined,
): Map<R, Finding<R>> {
  const findings = new Map<R, Finding<R>>();
  for (const bucket of fitting) {
    bucket.walk(
      pathOf(request),
      (entry) => {
        const miss = entry === winner ? FITS : missOrProblem(entry, request);
        if (miss === undefined) return;
        const { route } = entry;
        const nearness = entry === winner ? SELECTED : nearnessOf(entry, miss);
        const known = findings.get(route);
        if (known === undefined) findings.set(route, { route, bucket, entry, nearness, miss });
        // Of several that fit, the first takes precedence.
        else if (nearness > known.nearness) Object.assign(known, { entry, nearness, miss });
      },
      undefined,
    );
  }
  return findings;
}

/** Undefined: the path does not match the regular expression. */
function missOrProblem<R>(entry: Entry<R>, request: HttpRequest): number | GatewayError | undefined {
  try {
    if (!patternFits(entry, pathOf(request))) return undefined;
    return missOf(entry, request);
  } catch (error) {
    // `select` did not compare this entry: another one had fit before.
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

function nearnessOf<R>(entry: Entry<R>, miss: number | GatewayError): number {
  if (typeof miss !== "number") return 0;
  if (miss === FITS) return MATCHED;
  if (miss === 0) return 1;
  return miss <= entry.headers.length ? 2 : 3;
}

function candidateOf<R extends Keyed>(
  { route, entry, nearness, bucket, miss }: Finding<R>,
  request: HttpRequest,
  best: Finding<R> | undefined,
): RouteCandidate<R> {
  const candidate = {
    route,
    matched: nearness >= MATCHED,
    misses: nearness >= MATCHED ? 0 : entry.matchCount,
  };
  if (nearness === SELECTED) return { ...candidate, reason: { clause: "selected" } };
  if (typeof miss !== "number") return { ...candidate, reason: { clause: "pattern", problem: miss.message } };
  if (miss !== FITS) return { ...candidate, reason: missReason(entry, request, miss) };
  // Types cannot express that there is a winner if a route fits.
  if (best === undefined) throw new Error(`${route.key} fits, but no route was selected`);
  const because: Because =
    bucket === best.bucket
      ? { rule: whyBefore(best.entry, entry) }
      : { rule: "hostname", winner: best.bucket.hostname, loser: bucket.hostname };
  return { ...candidate, reason: { clause: "precedence", winner: best.route.key, because } };
}

interface Near<R> {
  readonly known: KnownRoute<R>;
  readonly entry: Entry<R> | undefined;
  /** How many characters the path has in common with that of the match. */
  readonly common: number;
}

/**
 * Of the routes whose paths do not fit, the `most` with which the path has most characters in common from its beginning; and how many
 * routes the buckets have together. `compared`: no more routes are compared, nor counted.
 */
function withOtherPath<R extends Keyed>(
  fitting: readonly Bucket<R>[],
  findings: ReadonlyMap<R, unknown>,
  path: string,
  most: number,
  compared = Number.POSITIVE_INFINITY,
): { readonly total: number; readonly nearest: readonly Near<R>[] } {
  const nearest: Near<R>[] = [];
  /** Routes that may be in another of the buckets too. */
  const shared = new Set<KnownRoute<R>>();
  let total = 0;
  let needed = 0;
  for (const { routes } of fitting) {
    for (const known of routes) {
      if (fitting.length > 1 && known.hostnames.length > 1) {
        if (shared.has(known)) continue;
        shared.add(known);
      }
      if (total === compared) return { total, nearest };
      total++;
      const near = nearestEntry(known, path, needed);
      if (near === undefined || most <= 0 || findings.has(known.route)) continue;
      insert(nearest, near);
      if (nearest.length > most) nearest.pop();
      if (nearest.length === most) needed = (nearest[most - 1] as Near<R>).common + 1;
    }
  }
  return { total, nearest };
}

/** Undefined if none has at least `needed` characters in common with the path. */
function nearestEntry<R>(known: KnownRoute<R>, path: string, needed: number): Near<R> | undefined {
  let nearest: Near<R> | undefined;
  for (const entry of known.entries) {
    const { literal } = entry;
    // Most are decided by one character.
    if (needed > 0 && literal.charCodeAt(needed - 1) !== path.charCodeAt(needed - 1)) continue;
    let common = 0;
    while (common < literal.length && literal.charCodeAt(common) === path.charCodeAt(common)) common++;
    if (common >= needed && common > (nearest?.common ?? -1)) nearest = { known, entry, common };
  }
  if (known.entries.length === 0 && needed === 0) return { known, entry: undefined, common: 0 };
  return nearest;
}

/** After its equals, so routes that are equally near keep their order. */
function insert<R>(nearest: Near<R>[], near: Near<R>): void {
  let at = nearest.length;
  while (at > 0 && (nearest[at - 1] as Near<R>).common < near.common) at--;
  nearest.splice(at, 0, near);
}

function otherPath<R extends Keyed>({ known, entry }: Near<R>, request: HttpRequest): RouteCandidate<R> {
  const reason: RouteReason = entry === undefined ? { clause: "noMatches" } : missReason(entry, request, "path");
  return { route: known.route, matched: false, reason, misses: known.entries.length };
}

function ofOtherHosts<R extends Keyed>(
  buckets: HostIndex<Bucket<R>>,
  fitting: readonly Bucket<R>[],
  host: string,
  most = MAX_OTHER_HOSTS,
): RouteCandidate<R>[] {
  const names = new Set(fitting.map(({ hostname }) => hostname));
  const others = new Map<KnownRoute<R>, RouteCandidate<R>>();
  for (const bucket of buckets.values()) {
    if (names.has(bucket.hostname)) continue;
    for (const known of bucket.routes) {
      if (others.size === most) return [...others.values()];
      if (known.hostnames.some((hostname) => names.has(hostname))) continue;
      const reason: RouteReason = { clause: "host", wanted: known.hostnames, got: host };
      others.set(known, { route: known.route, matched: false, reason, misses: 0 });
    }
  }
  return [...others.values()];
}
