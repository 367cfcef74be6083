/** Requests that get past the authentication of a route, because another route takes them. */
import type { PathMatch, Route } from "../ir/ir.ts";
import type { Target } from "../upstream/settings/target.ts";
import {
  authenticationOf,
  type HttpPlace,
  isConditional,
  isWithin,
  type LintedRoute,
  matchAt,
  meet,
  type NameOf,
  type Place,
  pathText,
} from "./linted-route.ts";
import { nearest, parentsOf, type Unconditional, unconditionalPlaces } from "./places-by-path.ts";
import type { RouteFinding } from "./route-findings.ts";

/** How a request gets past what a match demands. */
interface Bypass {
  readonly open: HttpPlace;
  /** The path of such a request. */
  readonly request: string;
  /** As the open route sends it. */
  readonly sent: string;
}

/**
 * Requests that get to what a match protects without what it demands: those for the same path that it does not select, such as
 * `POST /admin` beside a protected `GET /admin`, and those that another route rewrites to that path. Both lead to the same backend. What
 * backends do with other hosts is not known, so a route of another host is not taken for a way past.
 */
export function bypasses(
  routes: readonly LintedRoute[],
  winners: ReadonlyMap<string, Place>,
  nameOf: NameOf,
): RouteFinding[] {
  if (routes.every(({ guard }) => guard === undefined)) return [];
  const all = unconditionalPlaces(winners.values());
  const rewriting = rewritingPlaces(all);
  const found = new Map<string, RouteFinding>();
  for (const { places, guard } of routes)
    for (const place of places) {
      if (guard === undefined || place.match === undefined) continue;
      const { route, match } = place;
      const bypass = besides(place, all) ?? byRewriting(place, all, rewriting);
      if (bypass === undefined) continue;
      const { open, request, sent } = bypass;
      const related = [{ route: open.route, match: open.match, message: `has no ${guard}` }];
      const code = "bypassed-authentication";
      found.set(`${route.key} ${match}`, {
        route,
        match,
        code,
        found: [guard, nameOf(open, route), request, sent],
        related,
      });
    }
  return [...found.values()];
}

/** For the path of a match, or `/admin/` if it is the path `/admin`. */
function besides(place: HttpPlace, all: ReadonlyMap<string, Unconditional>): Bypass | undefined {
  const match = matchAt(place);
  const request = isConditional(match) ? pathText(match.path) : pathBesides(match.path);
  if (request === undefined || (match.path.type === "regex" && isConditional(match))) return undefined;
  const open = nearest(all, place.host, request);
  return open !== undefined && isOpen(open, place) ? { open, request, sent: request } : undefined;
}

/** A path that users may take for protected too, although the match does not select it. */
function pathBesides({ type, value }: PathMatch): string | undefined {
  if (type === "regex") return PARENT_OF_ALL.exec(value)?.[1];
  if (type === "pathPrefix" || value === "/") return undefined;
  return value.endsWith("/") ? value.slice(0, -1) : `${value}/`;
}

/** An expression for all paths below another one, but not for that itself: `/admin/.*`. */
const PARENT_OF_ALL = /^\^?((?:\/[\w-]+)+)\/\.[*+]\$?$/;

/** Places of routes that replace their prefix, by the prefix that they send. */
function rewritingPlaces(all: ReadonlyMap<string, Unconditional>): ReadonlyMap<string, readonly HttpPlace[]> {
  return Map.groupBy(
    [...all.values()]
      .flatMap(({ prefixes }) => [...prefixes.values()])
      .filter(({ route }) => replacedPrefix(route) !== undefined),
    ({ route }) => replacedPrefix(route) ?? "",
  );
}

/** By a route whose prefix becomes one that the path of the match begins with. */
function byRewriting(
  place: HttpPlace,
  all: ReadonlyMap<string, Unconditional>,
  rewriting: ReadonlyMap<string, readonly HttpPlace[]>,
): Bypass | undefined {
  const { path } = matchAt(place);
  if (rewriting.size === 0 || path.type === "regex") return undefined;
  const goal = (path.type === "pathPrefix" ? replacedPrefix(place.route) : undefined) ?? pathText(path);
  for (const parent of parentsOf(goal))
    for (const open of rewriting.get(parent)?.slice(0, MOST_TRIED) ?? []) {
      if (!isOpen(open, place) || !meet(open.host, place.host)) continue;
      const request = joined(pathText(matchAt(open).path), goal.slice(parent === "/" ? 0 : parent.length));
      const host = isWithin(open.host, place.host) ? open.host : place.host;
      if (nearest(all, host, request)?.route === open.route) return { open, request, sent: goal };
    }
  return undefined;
}

/** Bounds the work if thousands of routes send the same prefix. */
const MOST_TRIED = 16;

/** What replaces the prefix of a match, without slashes at its end. */
function replacedPrefix({ policies: { urlRewrite } }: Route): string | undefined {
  if (urlRewrite === undefined || !("path" in urlRewrite) || urlRewrite.path === undefined) return undefined;
  return "prefix" in urlRewrite.path ? pathText({ type: "pathPrefix", value: urlRewrite.path.prefix }) : undefined;
}

function joined(prefix: string, rest: string): string {
  return `${prefix === "/" ? "" : prefix}${rest}` || "/";
}

/** Whether the open route demands nothing and leads where the guarded one leads. */
function isOpen({ route: open }: HttpPlace, { route }: HttpPlace): boolean {
  if (open === route || authenticationOf(open.policies) !== undefined) return false;
  const targets = new Set(targetsOf(open));
  return targetsOf(route).some((target) => targets.has(target));
}

/** Backends that requests can be sent to, as texts that are equal for the same place. */
function targetsOf({ backends, policies: { directResponse, requestRedirect } }: Route): string[] {
  if (directResponse !== undefined || requestRedirect !== undefined) return [];
  const isFixed = ({ type }: Target): boolean => ["static", "unix", "service", "pool"].includes(type);
  return backends
    .filter(({ weight, target }) => weight > 0 && isFixed(target))
    .map(({ target }) => JSON.stringify(target));
}
