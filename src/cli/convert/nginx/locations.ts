/**
 * The choice of a location, as matches of routes. nginx takes an exact location, then the longest prefix if that has `^~`, then the first
 * regular expression of the file, then the longest prefix. Routes are tried by the length of their paths, whatever their kind, so regular
 * expressions are lengthened by empty groups until they stand where they belong.
 */
import type { Json } from "../converted.ts";
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

const LENGTHENING = "(?:)";

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

/** The regular expression that matches whole paths in which `pattern` occurs. */
export function wholePath(pattern: string): string {
  const [, flag = "", rest = ""] = /^(\(\?i\))?(.*)$/s.exec(pattern) ?? [];
  if (hasAlternatives(rest)) return `${flag}.*(?:${rest}).*`;
  const begins = rest.startsWith("^");
  const ends = rest.endsWith("$") && !/\\\$$/.test(rest);
  const inner = rest.slice(begins ? 1 : 0, ends ? -1 : undefined);
  return `${flag}${begins ? "" : ".*"}${inner}${ends ? "" : ".*"}`;
}

/** How every path begins that `pattern` matches, as a pattern of RE2. */
export function beginningOf(pattern: string): string {
  const [, flag = "", rest = ""] = /^(\(\?i\))?(.*)$/s.exec(pattern) ?? [];
  const [, literal = "", next = ""] = (!hasAlternatives(rest) && /^\^([\w/-]*)(.?)/s.exec(rest)) || [];
  return `${flag}^${/[?*{]/.test(next) ? literal.slice(0, -1) : literal}`;
}

/** A `|` outside of groups and classes. */
function hasAlternatives(pattern: string): boolean {
  let depth = 0;
  let inClass = false;
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at];
    if (char === "\\") at++;
    else if (inClass) inClass = char !== "]";
    else if (char === "[") inClass = true;
    else if (char === "(") depth++;
    else if (char === ")") depth--;
    else if (char === "|" && depth === 0) return true;
  }
  return false;
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
  const regexes = of("regex");
  const exact = new Set(of("exact").map(({ path }) => path));
  const ranked: (readonly [location: Location, part: LocationMatch["part"], pattern: string | undefined])[] = [];
  const rankPrefix = (location: Location): void => {
    const { path } = location;
    if (path.endsWith("/") && path !== "/") {
      const bare = path.slice(0, -1);
      // A prefix of a route matches the path without its last slash too.
      const own = locations.some((each) => each.path === bare && each.kind !== "regex" && each.kind !== "rewrite");
      if (redirects(location)) {
        if (!own) ranked.push([location, "without slash", undefined]);
        ranked.push([location, "whole", own ? `${quoted(path)}.*` : undefined]);
      } else ranked.push([location, "whole", `${quoted(path)}.*`]);
    } else {
      ranked.push([location, "whole", undefined]);
      if (path !== "/") ranked.push([location, "beyond", `${quoted(path)}[^/].*`]);
    }
  };
  for (const each of of("exact")) ranked.push([each, "whole", undefined]);
  for (const each of of("rewrite")) ranked.push([each, "whole", wholePath(each.path)]);
  for (const each of byLength("first prefix")) rankPrefix(each);
  for (const each of regexes) ranked.push([each, "whole", wholePath(each.path)]);
  for (const each of byLength("prefix")) rankPrefix(each);
  return lengthened(ranked, exact);
}

/** From the last to the first: each is longer than everything after it that might match the same path. */
function lengthened(
  ranked: readonly (readonly [Location, LocationMatch["part"], string | undefined])[],
  exact: ReadonlySet<string>,
): readonly LocationMatch[] {
  const result: LocationMatch[] = [];
  const lengths = new Map<LocationMatch, number>();
  const add = (each: LocationMatch, length: number): void => {
    lengths.set(each, length);
    result.push(each);
  };
  for (const [location, part, pattern] of ranked.toReversed()) {
    const { kind, path } = location;
    if (kind === "exact" || part === "without slash") {
      const bare = part === "without slash" ? path.slice(0, -1) : path;
      // Exact paths come before everything else.
      if (kind === "exact" || !exact.has(bare)) add({ location, part, match: { path: { exact: bare } } }, 0);
      continue;
    }
    let longest = 0;
    for (const [lower, length] of lengths)
      if (length > longest && mayOverlap({ location, part }, lower)) longest = length;
    const size = Buffer.byteLength(path);
    if (pattern === undefined && size > longest) add({ location, part, match: { path: { pathPrefix: path } } }, size);
    else {
      let text = pattern ?? prefixPattern(path);
      while (Buffer.byteLength(text) <= longest) text += LENGTHENING;
      add({ location, part, match: { path: { regex: text } } }, Buffer.byteLength(text));
    }
  }
  return result.toReversed();
}

/** Whether a path might match both; `lower` comes later. */
function mayOverlap(
  { location, part }: Pick<LocationMatch, "location" | "part">,
  lower: Pick<LocationMatch, "location" | "part">,
): boolean {
  if ([location.kind, lower.location.kind].some((kind) => kind === "regex" || kind === "rewrite")) return true;
  const [long, short] =
    location.path.length >= lower.location.path.length
      ? [location.path, lower.location.path]
      : [lower.location.path, location.path];
  if (!long.startsWith(short)) return false;
  if (long === short) return part === lower.part;
  const ofShort = short === location.path ? part : lower.part;
  return short.endsWith("/") || (ofShort === "beyond") === (long[short.length] !== "/");
}

/** What a prefix of a route matches, as a pattern. */
function prefixPattern(path: string): string {
  return path.endsWith("/") ? `${quoted(path.slice(0, -1))}(?:/.*)?` : `${quoted(path)}(?:/.*)?`;
}

function quoted(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&");
}

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
