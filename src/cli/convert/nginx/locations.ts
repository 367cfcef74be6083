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
  /** `path` matches more than the location, whose regular expression is not RE2. */
  readonly isWider?: true;
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
  const byLength = (kind: Location["kind"]): readonly Location[] =>
    [...of(kind)].sort((a, b) => b.path.length - a.path.length);
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
  for (const each of byLength("first prefix")) rankPrefix(each);
  for (const each of of("regex")) rankRegex(each);
  for (const each of byLength("prefix")) rankPrefix(each);
  const all = [...first, ...ranked];
  const paths = pathsInOrder(all.map(([, , shape]) => shape));
  return all.map(([location, part], i) => ({ location, part, match: { path: paths[i] } }));
}

type Ranked = readonly [location: Location, part: LocationMatch["part"], shape: PathShape];

/** With those inside of other locations. */
export function allLocations(block: readonly Directive[]): readonly Location[] {
  return valuesOf(block, "location").flatMap((directive) => {
    const own = locationOf(directive);
    const inner = (directive.block ?? []).filter((each) => each.name !== "location" && each.name !== "proxy_pass");
    const nested = allLocations(directive.block ?? []).map((each) => ({
      ...each,
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
