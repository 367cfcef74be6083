import { RE2JS } from "re2js";

type Pattern = Pick<RE2JS, "test">;

/** Patterns can come from a request, so neither their length nor their number is left to it. */
const MAX_LENGTH = 1024;
const MAX_CACHED = 256;
const cache = new Map<string, Pattern>();

/**
 * Whether RE2 `pattern` fits any part of `text`: what CEL means by `matches`, in time linear in the text. Throws an Error
 * when the pattern is not RE2 syntax or longer than 1024 characters.
 */
export function matchesPattern(text: string, pattern: string): boolean {
  return compilePattern(pattern).test(text);
}

export function compilePattern(source: string): Pattern {
  const known = cache.get(source);
  if (known !== undefined) return known;
  if (source.length > MAX_LENGTH) throw new Error(`the pattern is longer than ${MAX_LENGTH} characters`);
  const pattern = RE2JS.compile(source);
  // The oldest goes; a pattern in use comes back at the cost of one compilation.
  if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value ?? "");
  cache.set(source, pattern);
  return pattern;
}
