/** The transport-free message types that every protocol engine, policy and the trace share. */
import type { Reason } from "../../base/errors.ts";

declare const LATIN1: unique symbol;

/**
 * Text that can be sent in a header field: every character is below U+0100, so it is sent as one byte, and none is a control
 * character except HTAB, so no CR, LF or NUL can split the message (RFC 9110 5.5). The parser makes it from received bytes;
 * `isFieldValue` and `isToken` (h1/syntax.ts) check all other text. It exists for the compiler only and costs nothing.
 */
export type Latin1 = string & { readonly [LATIN1]: true };

/** Checked text, or literals in the gateway's code. */
export type FieldText = Latin1 | "" | "0" | "true" | "false" | "http" | "https" | "upgrade" | "Origin";

/**
 * Header fields in order of arrival, flat: `[name0, value0, name1, value1, …]`; names are lower-case; latin1 text. Only checked
 * values can be added to a list, so text from a configuration or an expression has to be checked first. The compiler does not check
 * list literals.
 */
export interface HeaderList extends Array<string> {
  push(name: string, value: FieldText): number;
  /** Names of fields, pseudo-header fields too, that HTTP/2 passes on without indexing: their sender asked for that. Rare. */
  neverIndexed?: Set<string>;
}

/** Fields that are only read: a `HeaderList`, or text from elsewhere. */
export interface Fields extends ReadonlyArray<string> {
  readonly neverIndexed?: Set<string>;
}

/** A request after normalization; policies may change every field. */
export interface HttpRequest {
  method: string;
  scheme: "http" | "https";
  /** `host[:port]` as received (its case is kept); `` only before validation. */
  authority: string;
  /** Begins with `/`, or is `*` for `OPTIONS *`. */
  path: string;
  /** `` or begins with `?`. */
  search: string;
  readonly version: "HTTP/1.0" | "HTTP/1.1" | "HTTP/2";
  /** Without Host, hop-by-hop fields and the trace token. */
  headers: HeaderList;
}

/** Statuses whose responses have no body, whatever their fields say (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5). */
export const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

export interface HttpResponse {
  status: number;
  /** Without hop-by-hop fields. */
  headers: HeaderList;
}

/** A response that the gateway itself makes. Text of a body is sent as UTF-8; content-length is added by the sender. */
export interface LocalReply extends HttpResponse {
  readonly body: string | Uint8Array;
  /** Label of metrics and log. Default: DirectResponse. */
  readonly reason?: Reason;
}

/** First value of `name` (lower-case), or undefined. */
export function getHeader(headers: Fields, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1];
  return undefined;
}

/** Removes every field called `name` (lower-case), in place. */
export function removeHeader(headers: HeaderList, name: string): void {
  let to = 0;
  for (let from = 0; from < headers.length; from += 2) {
    if (headers[from] === name) continue;
    if (to !== from) {
      headers[to] = headers[from] as string;
      headers[to + 1] = headers[from + 1] as string;
    }
    to += 2;
  }
  headers.length = to;
}

/** Replaces every field called `name` by one with `value`, at the place of the first, else at the end. */
export function setHeader(headers: HeaderList, name: string, value: FieldText): void {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== name) continue;
    headers[i + 1] = value;
    let to = i + 2;
    for (let from = i + 2; from < headers.length; from += 2) {
      if (headers[from] === name) continue;
      headers[to] = headers[from] as string;
      headers[to + 1] = headers[from + 1] as string;
      to += 2;
    }
    headers.length = to;
    return;
  }
  headers.push(name, value);
}

/** Argument and result of the last call of `hostOf`: consecutive requests often have the same authority. */
let lastAuthority = "";
let lastHost = "";

/** The host part of an authority (`example.com:80` → `example.com`, `[::1]:80` → `[::1]`), lower-case. */
export function hostOf(authority: string): string {
  if (authority === lastAuthority) return lastHost;
  const colon = authority.lastIndexOf(":");
  const host = colon > authority.lastIndexOf("]") ? authority.slice(0, colon) : authority;
  lastHost = host.toLowerCase();
  lastAuthority = authority;
  return lastHost;
}

/** Adds the field of `from` whose name is at `at`. Fields in a list have been checked. */
export function copyField(to: HeaderList, from: HeaderList, at: number): void {
  to.push(from[at] as Latin1, from[at + 1] as Latin1);
}

/** Adds all fields of `from`. */
export function addFields(to: HeaderList, from: HeaderList): void {
  for (let i = 0; i < from.length; i += 2) copyField(to, from, i);
}

/** Returns `copy`, a list with fields of `from`, after copying `neverIndexed` too. */
export function madeOf(from: Fields, copy: HeaderList): HeaderList {
  if (from.neverIndexed !== undefined) copy.neverIndexed = from.neverIndexed;
  return copy;
}

/** A number in decimal digits, which need no check. */
export function decimal(value: number): Latin1 {
  return String(value) as Latin1;
}
