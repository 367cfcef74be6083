/**
 * The choice of a location, as matches of routes. nginx takes an exact location, then the longest prefix if that has `^~`, then the first
 * regular expression of the file, then the longest prefix.
 */
import type { Json } from "../converted.ts";
import { type PathShape, pathsInOrder, wholePath } from "../paths.ts";
import type { Directive } from "./parse.ts";
import { valuesOf } from "./scope.ts";

export interface Location {
  readonly directive: Directive;
  /** `rewrite`: a redirect of the server, which comes before the choice of a location. */
  readonly kind: "exact" | "rewrite" | "first prefix" | "regex" | "prefix";
  /** A path, or a regular expression. */
  readonly path: string;
  /** The path takes requests that the location does not have, so they get 501. */
  readonly isWider?: true;
  /** The location around it. */
  readonly outer?: Location;
}

/** A match of a location, in the order in which nginx tries them. */
export interface LocationMatch {
  readonly location: Location;
  readonly match: Json;
  /** `beyond`: paths that go on within the last segment of a prefix, such as `/shopping` of `/shop`. */
  readonly part: "whole" | "beyond" | "without slash";
}

/** Undefined for a named location, which only other directives lead to. */
function locationOf(directive: Directive): Location | undefined {
  const [first = "", second] = directive.args;
  if (second === undefined) {
    const [, sign, path = ""] = /^(=|\^~|~\*|~)?(.*)$/s.exec(first) ?? [];
    if (path.startsWith("@")) return undefined;
    return made(directive, sign, path);
  }
  return made(directive, first, second);
}

function made(directive: Directive, sign: string | undefined, path: string): Location {
  switch (sign) {
    case "=":
      return { directive, kind: "exact", path };
    case "^~":
      return { directive, kind: "first prefix", path };
    case "~":
      return { directive, kind: "regex", path };
    case "~*":
      return { directive, kind: "regex", path: `(?i)${path}` };
    default:
      return { directive, kind: "prefix", path };
  }
}

/**
 * The matches of all locations of a server. `redirects`: of a prefix that ends in a slash, the path without it is redirected to it, which
 * nginx does where a location passes requests on.
 */
export function matchesOf(
  locations: readonly Location[],
  redirects: (location: Location) => boolean,
): readonly LocationMatch[] {
  const of = (kind: Location["kind"]): readonly Location[] => locations.filter((each) => each.kind === kind);
  const byLength = (some: readonly Location[]): readonly Location[] =>
    [...some].sort((a, b) => b.path.length - a.path.length);
  // A longer prefix is chosen before `^~`.
  const firstPrefixes = locations.filter((each) => each.kind === "first prefix" || isBelowFirst(each, locations));
  const exact = new Set(of("exact").map(({ path }) => path));
  /** Before regular expressions are tried. */
  const first: Ranked[] = of("exact").map((each) => [each, "whole", { type: "exact", path: each.path }]);
  const ranked: Ranked[] = [];
  const rankPrefix = (location: Location): void => {
    const { path } = location;
    if (path === "/" || !path.endsWith("/")) {
      ranked.push([location, "whole", { type: "segments", path }]);
      if (path !== "/") ranked.push([location, "beyond", { type: "beyond", path }]);
      return;
    }
    const bare = path.slice(0, -1);
    // A prefix of a route matches the path without its last slash too.
    const own = locations.some((each) => each.path === bare && each.kind !== "regex" && each.kind !== "rewrite");
    const redirected = redirects(location) && !own;
    if (redirected && !exact.has(bare)) first.push([location, "without slash", { type: "exact", path: bare }]);
    ranked.push([location, "whole", { type: redirected ? "segments" : "below", path }]);
  };
  const rankRegex = (location: Location): void => {
    ranked.push([location, "whole", { type: "regex", path: wholePath(location.path) }]);
  };
  for (const each of of("rewrite")) rankRegex(each);
  for (const each of byLength(firstPrefixes)) rankPrefix(each);
  for (const each of of("regex")) rankRegex(each);
  for (const each of byLength(of("prefix").filter((each) => !firstPrefixes.includes(each)))) rankPrefix(each);
  const all = [...first, ...ranked];
  const paths = pathsInOrder(all.map(([, , shape]) => shape));
  return all.map(([location, part], i) => ({ location, part, match: { path: paths[i] } }));
}

/**
 * Why a route for a location would take requests that belong to another one: nginx chooses in several steps, and routes are chosen in one.
 * Undefined: it does not.
 */
export function whyWider(location: Location, locations: readonly Location[]): string | undefined {
  const { kind, outer } = location;
  const isInner = (each: Location): boolean => each.outer?.kind === kind && each.outer.path === location.path;
  if (outer !== undefined && (kind === "regex" || outer.kind === "regex"))
    return `is inside of location ${outer.directive.args.join(" ")}`;
  const inner = locations.find((each) => isInner(each) && (kind === "regex" || each.kind === "regex"));
  if (inner !== undefined && kind !== "prefix") return `has location ${inner.directive.args.join(" ")} inside`;
  const isChecked = locations.some((each) => each.kind === "regex");
  return isChecked && isBelowFirst(location, locations)
    ? "continues a prefix with ^~, and regular expressions take precedence over it"
    : undefined;
}

/** Whether a location is a prefix that goes on after one with `^~`. */
function isBelowFirst({ kind, path }: Location, locations: readonly Location[]): boolean {
  return (
    kind === "prefix" &&
    locations.some(
      (each) => each.kind === "first prefix" && path.length > each.path.length && path.startsWith(each.path),
    )
  );
}

type Ranked = readonly [location: Location, part: LocationMatch["part"], shape: PathShape];

/** With those inside of other locations. */
export function allLocations(block: readonly Directive[]): readonly Location[] {
  return valuesOf(block, "location").flatMap((directive) => {
    const own = locationOf(directive);
    const inner = (directive.block ?? []).filter(({ name }) => !["location", "proxy_pass", "grpc_pass"].includes(name));
    const nested = allLocations(directive.block ?? []).map((each) => ({
      ...each,
      ...(own && { outer: each.outer ?? own }),
      directive: {
        ...each.directive,
        block: [...(each.directive.block ?? []), ...inherited(each.directive.block ?? [], inner)],
      },
    }));
    return own === undefined ? nested : [own, ...nested];
  });
}

/** What a nested location has from the one around it. */
export function inherited(own: readonly Directive[], outer: readonly Directive[]): readonly Directive[] {
  return outer.filter(
    (each) => !["return", "rewrite", "if"].includes(each.name) && !own.some(({ name }) => name === each.name),
  );
}
