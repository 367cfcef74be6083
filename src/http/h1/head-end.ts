/** Finds where a head ends in received bytes, and detects early when they can never become one. */
import { CR, type HeadError, invalid, LF, TAB, TOKEN } from "../message/syntax.ts";

const NOT_HTTP = invalid("the message does not begin with a method or version");
const BARE_CR = invalid("CR without LF");
const BARE_LF = invalid("LF without CR");
const CONTROL = invalid("control character in the head");

/**
 * Index just after the first CRLFCRLF of `buffer[from, end)`, or -1. When more bytes arrive, the search may continue from
 * `max(start, end - 3)`. Looks at one byte in four where no line ends; `Buffer.indexOf` would read past `end` into what an earlier
 * message left there.
 */
export function findHeadEnd(buffer: Buffer, from: number, end: number): number {
  let i = from + 3;
  while (i < end) {
    const byte = buffer[i];
    if (byte === LF) {
      if (buffer[i - 1] === CR && buffer[i - 2] === LF && buffer[i - 3] === CR) return i + 1;
      i += 2;
    } else {
      i += byte === CR ? 1 : 4;
    }
  }
  return -1;
}

/**
 * Why the beginning of a head, `buffer[start, end)`, can never become a valid one, or undefined when it still can. A client that
 * speaks another protocol may never send CRLFCRLF; it gets an error at once. `from` skips what an earlier call has seen.
 */
export function prefixError(buffer: Buffer, start: number, end: number, from: number = start): HeadError | undefined {
  if (start >= end) return undefined;
  const first = buffer[start] as number;
  // A lone CR may still become the empty line that is allowed before a request.
  if (TOKEN[first] !== 1) return first === CR && end - start === 1 ? undefined : NOT_HTTP;
  // One byte is checked again: whether a CR at the end of the earlier bytes is valid depends on what follows it.
  for (let i = Math.max(start, from - 1); i < end; i++) {
    const byte = buffer[i] as number;
    if (byte >= 0x20 && byte !== 0x7f) continue;
    if (byte === CR) {
      if (i + 1 < end && buffer[i + 1] !== LF) return BARE_CR;
    } else if (byte === LF) {
      if (buffer[i - 1] !== CR) return BARE_LF;
    } else if (byte !== TAB) {
      return CONTROL;
    }
  }
  return undefined;
}

/** Index after the one empty line that is tolerated before a request line (RFC 9112 2.2), else `start`. */
export function skipLeadingCrlf(buffer: Buffer, start: number, end: number): number {
  return start + 1 < end && buffer[start] === CR && buffer[start + 1] === LF ? start + 2 : start;
}
