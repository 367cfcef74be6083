/**
 * Paths in the order in which another gateway tries them, as matches of routes. Routes are tried by the length of their paths, whatever
 * their kind, so regular expressions are lengthened by empty groups until they stand where they belong.
 */
import type { Json } from "./converted.ts";

/**
 * `segments`: the path, and what is below it, as `pathPrefix`. `below`: everything that begins with the path, which ends in a slash.
 * `beyond`: paths that go on within the last segment, such as `/shopping` of `/shop`. `regex`: what a pattern matches as a whole.
 */
export interface PathShape {
  readonly type: "exact" | "segments" | "below" | "beyond" | "regex";
  /** A pattern of RE2 if the type is `regex`. */
  readonly path: string;
  /** Letters match in both cases. */
  readonly isCaseless?: true;
  /** Of shapes with the same path, a heavier one is tried first without being longer. Default: 0. */
  readonly weight?: number;
}

const LENGTHENING = "(?:)";

/**
 * A `path` for each shape, the first of which is tried first: each is longer than everything after it that might match the same path.
 */
export function pathsInOrder(shapes: readonly PathShape[]): readonly Json[] {
  const result: Json[] = [];
  const placed: { readonly shape: PathShape; readonly length: number; readonly path: Json }[] = [];
  const place = (shape: PathShape, length: number, path: Json): void => {
    placed.push({ shape, length, path });
    result.push(path);
  };
  for (const [i, shape] of [...shapes.entries()].toReversed()) {
    const before = shapes.slice(0, i);
    // Exact paths come before everything else.
    if (!isRanked(shape) && !before.some((each) => isRanked(each) && mayOverlap(each, shape))) {
      place(shape, 0, { exact: shape.path });
      continue;
    }
    const longest = (lower: typeof placed): number =>
      Math.max(0, ...lower.filter((each) => mayOverlap(shape, each.shape)).map(({ length }) => length));
    const [twin] = placed.filter((each) => isHeavier(shape, each.shape)).slice(-1);
    if (twin !== undefined && twin.length > longest(placed.filter((each) => !isHeavier(shape, each.shape)))) {
      place(shape, twin.length, twin.path);
      continue;
    }
    const least = longest(placed);
    const size = Buffer.byteLength(shape.path);
    if (shape.type === "segments" && !shape.isCaseless && size > least) {
      place(shape, size, { pathPrefix: shape.path });
      continue;
    }
    let regex = `${shape.isCaseless ? "(?i)" : ""}${patternOf(shape)}`;
    while (Buffer.byteLength(regex) <= least) regex += LENGTHENING;
    place(shape, Buffer.byteLength(regex), { regex });
  }
  return result.toReversed();
}

/** Whether the length of a path decides when it is tried. */
function isRanked({ type, isCaseless }: PathShape): boolean {
  return type !== "exact" || isCaseless === true;
}

/** Whether a shape has the path of another, and goes before it. */
function isHeavier(shape: PathShape, other: PathShape): boolean {
  if (shape.isCaseless !== other.isCaseless) return false;
  return shape.type === other.type && shape.path === other.path && (shape.weight ?? 0) > (other.weight ?? 0);
}

/** What a shape matches, as a pattern. */
function patternOf({ type, path }: PathShape): string {
  switch (type) {
    case "exact":
      return quoted(path);
    case "segments":
      return `${quoted(bare(path))}(?:/.*)?`;
    case "below":
      return `${quoted(path)}.*`;
    case "beyond":
      return `${quoted(path)}[^/].*`;
    case "regex":
      return path;
  }
}

/** Whether some path might match both. */
function mayOverlap(a: PathShape, b: PathShape): boolean {
  if (a.type === "regex" || b.type === "regex") return true;
  const [long, short] = literal(a).length >= literal(b).length ? [a, b] : [b, a];
  const isCaseless = a.isCaseless || b.isCaseless;
  const [longer = "", shorter = ""] = [long, short].map((each) =>
    isCaseless ? literal(each).toLowerCase() : literal(each),
  );
  if (!longer.startsWith(shorter)) return false;
  if (longer.length > shorter.length) return goesOn(short, longer[shorter.length] === "/");
  const isBeyond = (shape: PathShape): boolean => shape.type === "beyond";
  return isBeyond(a) === isBeyond(b) || a.type === "below" || b.type === "below";
}

/** Whether a shape has paths that go on after its literal part, with a slash or with another character. */
function goesOn({ type }: PathShape, withSlash: boolean): boolean {
  return type === "below" || (type === "segments" && withSlash) || (type === "beyond" && !withSlash);
}

function literal({ type, path }: PathShape): string {
  return type === "segments" ? bare(path) : path;
}

/** Slashes at the end of a prefix mean nothing. */
function bare(path: string): string {
  return path.replace(/\/+$/, "");
}

/** A text as a pattern that matches it. */
export function quoted(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&");
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
  const [, text = "", next = ""] = (!hasAlternatives(rest) && /^\^([\w/-]*)(.?)/s.exec(rest)) || [];
  return `${flag}^${/[?*{]/.test(next) ? text.slice(0, -1) : text}`;
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
