/**
 * Makes the text of heads, chunk headers and trailers, to be sent as latin1. Nothing is checked here:
 * header lists take values from a parser, or checked ones (`Latin1`, message.ts).
 */
import type { HeaderList } from "../message/message.ts";
import { REASON_PHRASES } from "./reason-phrases.ts";

/** Status lines by status, made once. */
const STATUS_LINES: readonly string[] = Array.from({ length: 1000 }, (_, status) => {
  return `HTTP/1.1 ${status} ${REASON_PHRASES[status] ?? ""}\r\n`;
});

/**
 * Consecutive fields that many heads share, with their lines. Text that was concatenated from many pieces is slow to write: 0.14 µs
 * for the four lines that the gateway adds to each request.
 */
export interface MadeFields {
  readonly fields: HeaderList;
  readonly text: string;
}

export function makeFields(fields: HeaderList): MadeFields {
  // Converted to bytes and back: only text in one piece is cheap to write.
  return { fields, text: Buffer.from(appendFields("", fields, null), "latin1").toString("latin1") };
}

/**
 * A request's head. `rawNames`, parallel to the fields of `headers`, replaces their names; `end` is lines that are formatted already
 * and the empty line that ends the head; the lines of `made` are used where `headers` has its fields.
 */
export function requestHeadText(
  method: string,
  pathAndQuery: string,
  host: string,
  headers: HeaderList,
  rawNames: readonly string[] | null,
  end: string,
  made?: MadeFields,
): string {
  const start = `${method} ${pathAndQuery} HTTP/1.1\r\nhost: ${host}\r\n`;
  return appendFields(start, headers, rawNames, made) + end;
}

/**
 * A response's head with its final empty line; `status` is 100 to 999; `extra` is lines that are formatted already, such as
 * `connection: close\r\n`. See `requestHeadText` for `rawNames`.
 */
export function responseHeadText(
  status: number,
  headers: HeaderList,
  rawNames: readonly string[] | null,
  extra: string,
): string {
  return `${appendFields(STATUS_LINES[status] as string, headers, rawNames)}${extra}\r\n`;
}

/** What goes before `size` bytes of data; CRLF goes after them. `size` is at least 1: 0 would end the message. */
export function chunkHeader(size: number): string {
  return `${size.toString(16)}\r\n`;
}

/** Ends a chunked body without trailers. */
export const LAST_CHUNK = "0\r\n\r\n";

/** Ends a chunked body with trailers; names are as they were written if that was remembered. */
export function trailerText(trailers: HeaderList): string {
  return `${appendFields("0\r\n", trailers, rememberedNames(trailers))}\r\n`;
}

function appendFields(
  start: string,
  headers: HeaderList,
  rawNames: readonly string[] | null,
  made?: MadeFields,
): string {
  let text = start;
  for (let i = 0; i < headers.length; i += 2) {
    const name = rawNames === null ? headers[i] : rawNames[i >> 1];
    if (made !== undefined && rawNames === null && name === made.fields[0] && standAt(headers, i, made.fields)) {
      text += made.text;
      i += made.fields.length - 2;
      continue;
    }
    text += `${name}: ${headers[i + 1]}\r\n`;
  }
  return text;
}

function standAt(headers: HeaderList, at: number, fields: HeaderList): boolean {
  for (let i = 0; i < fields.length; i++) if (headers[at + i] !== fields[i]) return false;
  return true;
}

// ── names as they were written (`headerCase: preserve`) ──

const trailerNames = new WeakMap<HeaderList, readonly string[]>();

/** Remembers how the names of trailers were written; lists in the gateway have lower-case names. */
export function rememberNames(trailers: HeaderList, rawNames: readonly string[]): void {
  trailerNames.set(trailers, rawNames);
}

/** Names of trailers as they were written; null = as they are in the list. */
function rememberedNames(trailers: HeaderList): string[] | null {
  const rawNames = trailerNames.get(trailers);
  return rawNames === undefined ? null : alignNames(trailers, rawNames);
}

/**
 * Original-case names for a list that policies may have changed since it was read. Each of several fields with the same name gets
 * the case that it was written in; added ones get the case of the last.
 */
export function alignNames(headers: HeaderList, rawNames: readonly string[]): string[] {
  const known = new Map<string, { readonly written: string[]; next: number }>();
  for (const name of rawNames) {
    const key = name.toLowerCase();
    const entry = known.get(key);
    if (entry === undefined) known.set(key, { written: [name], next: 0 });
    else entry.written.push(name);
  }
  const names: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const entry = known.get(name);
    names.push(entry?.written[Math.min(entry.next++, entry.written.length - 1)] ?? name);
  }
  return names;
}
