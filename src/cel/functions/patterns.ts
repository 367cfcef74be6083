/** Regular expressions: RE2, which takes linear time whatever the pattern. */
import { RE2JS } from "re2js";
import { BoundedCache } from "../../base/bounded-cache.ts";
import { detached } from "../../base/detached.ts";
import { patternProblem } from "../../base/pattern-problem.ts";
import { Budget, charge, endBudget, measured, startBudget } from "../values/budget.ts";
import { type Failure, fail } from "../values/failure.ts";
import type { CelValue } from "../values/types.ts";
import { find } from "./search.ts";

/** Patterns can come from requests, so their length and their number are limited. */
const MAX_LENGTH = 1024;
/** Steps for each character of a text: RE2 takes up to 40 ns where most functions take less than one. */
const PER_CHARACTER = 48;
/** Steps for each character of a pattern that a request brings: compiling counted repetitions takes up to 25 µs each. */
const PER_PATTERN_CHARACTER = 8192;
/**
 * Nanoseconds for each character and each instruction of a pattern whose table of states does not fit: `(a?){1000}a{1000}` takes 0.4 s
 * for 5,000 characters.
 */
const PER_INSTRUCTION = 16;
/** Searches that take at most this many nanoseconds are not measured. */
const SHORT_SEARCH = 100_000;
/** Enough for the longest pattern. */
const CONSTANT_MICROSECONDS = (MAX_LENGTH * PER_PATTERN_CHARACTER) / 500;
const MAX_CACHED = 256;
const cache = new BoundedCache<RE2JS>(MAX_CACHED);

/**
 * Whether RE2 `pattern` fits any part of `text`: what CEL means by `matches`, in time linear in the text. Fails when the
 * pattern is not RE2 syntax or longer than 1024 characters.
 */
export function matchesPattern(text: string, pattern: string): boolean | Failure {
  charge(text.length * PER_CHARACTER);
  const compiled = compilePattern(pattern);
  return compiled instanceof RE2JS ? search(compiled, text, () => compiled.test(text)) : compiled;
}

/** Looks for `pattern` once in `text`, within the remaining time. */
export function search(pattern: RE2JS, text: string, run: () => boolean): boolean {
  const most = text.length * pattern.programSize() * PER_INSTRUCTION;
  return most <= SHORT_SEARCH ? run() : measured(most, run);
}

/** The pattern compiled, from a cache of the last ones. */
export function compilePattern(source: string): RE2JS | Failure {
  charge(source.length);
  const known = cache.get(source);
  if (known !== undefined) return known;
  if (source.length > MAX_LENGTH) return fail(`the pattern is longer than ${MAX_LENGTH} characters`);
  charge(source.length * PER_PATTERN_CHARACTER);
  let pattern: RE2JS;
  try {
    pattern = RE2JS.compile(source);
  } catch (error) {
    return fail(patternProblem(error));
  }
  cache.set(detached(source), pattern);
  return pattern;
}

/** A pattern from the configuration, which is not charged to any request. Throws Error for invalid syntax. */
export function constantPattern(source: string): RE2JS {
  startBudget(new Budget(CONSTANT_MICROSECONDS));
  try {
    const pattern = compilePattern(source);
    if (!(pattern instanceof RE2JS)) throw new Error(pattern.what);
    return pattern;
  } finally {
    endBudget();
  }
}

/** The test for a constant pattern; plain texts, prefixes and suffixes need no RE2. Throws Error for invalid syntax. */
export function patternTest(constant: CelValue): ((text: CelValue) => boolean) | undefined {
  if (typeof constant !== "string") return undefined;
  const pattern = constantPattern(constant);
  const simple = /^(\^?)([A-Za-z0-9 /_:;,@!"#%&'<=>~-]*)(\$?)$/.exec(constant);
  const text = simple?.[2];
  const run =
    text === undefined
      ? (value: string) => search(pattern, value, () => pattern.test(value))
      : simpleTest(text, simple?.[1] !== "", simple?.[3] !== "");
  const perCharacter = text === undefined ? PER_CHARACTER : 4;
  return (value) => {
    charge((value as string).length * perCharacter);
    return run(value as string);
  };
}

function simpleTest(text: string, fromStart: boolean, toEnd: boolean): (value: string) => boolean {
  if (fromStart && toEnd) return (value) => value === text;
  if (fromStart) return (value) => value.startsWith(text);
  return toEnd ? (value) => value.endsWith(text) : (value) => find(value, text) !== -1;
}
