/** Parameters and bodies of admin endpoints. An invalid value throws AdminBadRequest, which says what is expected. */
import { parseDuration } from "../../base/durations.ts";
import { parseSize } from "../../base/sizes.ts";
import { AdminBadRequest } from "../plane/plane.ts";

const MAX_EXPRESSION = 4096;
/** ISO 8601 with a time zone. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** The text of a CEL expression; undefined if it is absent or empty. */
export function expressionText(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name) ?? "";
  if (text.length > MAX_EXPRESSION)
    throw new AdminBadRequest(`invalid ${name}: longer than ${MAX_EXPRESSION} characters`);
  return text === "" ? undefined : text;
}

/** false if it is absent. */
export function flag(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? "false";
  if (text !== "true" && text !== "false") throw invalid(name, text, "true or false");
  return text === "true";
}

/** An integer from 1 to `most`. */
export function integer(query: URLSearchParams, name: string, fallback: number, most: number): number {
  const text = query.get(name);
  if (text === null) return fallback;
  const value = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > most) throw invalid(name, text, `an integer from 1 to ${most}`);
  return value;
}

/** One of some words; by default the first. */
export function oneOf<Word extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly [Word, ...Word[]],
): Word {
  const text = query.get(name) ?? words[0];
  const word = words.find((each) => each === text);
  if (word === undefined) throw invalid(name, text, words.join(", "));
  return word;
}

/** Bytes, at most `most`, a size such as `2MiB`; `fallback` is a size too. */
export function size(query: URLSearchParams, name: string, fallback: string, most: string): number {
  const text = query.get(name) ?? fallback;
  const bytes = parseSize(text);
  if (bytes === undefined || bytes > Number(parseSize(most)))
    throw invalid(name, text, `bytes or a size such as 4KiB, at most ${most}`);
  return bytes;
}

/** Milliseconds, undefined if it is absent; from 1 to `most`, a duration such as `24h`. Without `most`, any duration is valid. */
export function duration(query: URLSearchParams, name: string, most?: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const ms = parseDuration(text);
  if (ms === undefined || (most !== undefined && (ms < 1 || ms > Number(parseDuration(most)))))
    throw invalid(name, text, `a duration such as 30s${most === undefined ? "" : `, at most ${most}`}`);
  return ms;
}

/** A point in time, in milliseconds since the epoch; undefined if it is absent. */
export function time(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const ms = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw invalid(name, text, "a time such as 2026-01-31T12:00:00Z");
  return ms;
}

/** The JSON of a body; `example`: what to send. */
export function jsonBody(body: Buffer, example: string): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    throw new AdminBadRequest(`the body is not JSON; send ${example}`);
  }
}

function invalid(name: string, text: string, expected: string): AdminBadRequest {
  return new AdminBadRequest(`invalid ${name} ${JSON.stringify(text)}: expected ${expected}`);
}
