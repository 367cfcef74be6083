/** Search in long texts, in pieces between which the budget is checked. */
import { charge } from "../values/budget.ts";

/** V8's search skips ahead by tables of this size; for longer parts it compares repeatedly. */
const MAX_TABLE = 250;
/** Characters that are searched at a time; the budget's clock is read in between. */
const CHUNK = 32 * 1024;
/** Characters for each step: usually 0.1 ns each, up to 7 ns if most of the text resembles the part. */
const PER_STEP = 4;
const PER_SEARCH = 16;
/** Steps for each character if `part` is long. */
const PER_CHARACTER_OF_LONG = 4;

/** `text.indexOf(part, from)`, but in linear time for every text and part, and charged. */
export function find(text: string, part: string, from = 0): number {
  if (part.length > MAX_TABLE) return findLong(text, part, from);
  charge(PER_SEARCH);
  for (let at = from; ; at += CHUNK) {
    const end = Math.min(text.length, at + CHUNK + part.length - 1);
    // A slice has no copy of its own.
    const found = text.slice(at, end).indexOf(part);
    charge(Math.ceil((found === -1 ? end - at : found) / PER_STEP));
    if (found !== -1) return at + found;
    if (end === text.length) return -1;
  }
}

/** Knuth, Morris and Pratt. */
function findLong(text: string, part: string, from: number): number {
  if (part.length > text.length - from) return -1;
  charge(part.length * PER_CHARACTER_OF_LONG);
  const borders = bordersOf(part);
  let matched = 0;
  for (let start = from; start < text.length; start += CHUNK) {
    const end = Math.min(text.length, start + CHUNK);
    charge((end - start) * PER_CHARACTER_OF_LONG);
    for (let i = start; i < end; i++) {
      const unit = text.charCodeAt(i);
      while (matched > 0 && part.charCodeAt(matched) !== unit) matched = borders[matched - 1] as number;
      if (part.charCodeAt(matched) === unit) matched++;
      if (matched === part.length) return i + 1 - matched;
    }
  }
  return -1;
}

/** For each prefix of the text: the length of its longest proper prefix that is also its suffix. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length);
  let matched = 0;
  for (let i = 1; i < text.length; i++) {
    while (matched > 0 && text.charCodeAt(matched) !== text.charCodeAt(i)) matched = borders[matched - 1] as number;
    if (text.charCodeAt(matched) === text.charCodeAt(i)) matched++;
    borders[i] = matched;
  }
  return borders;
}

/** The parts of a text between the occurrences of `separator`, which is not empty; `limit` parts at most. */
export function splitAt(text: string, separator: string, limit: number, perPart: number): string[] {
  const parts: string[] = [];
  let at = 0;
  while (parts.length < limit - 1) {
    const found = find(text, separator, at);
    if (found === -1) break;
    charge(perPart);
    parts.push(text.slice(at, found));
    at = found + separator.length;
  }
  parts.push(text.slice(at));
  return parts;
}
