/** Reads a field section (RFC 9112 section 5) in one pass, strictly, and sorts out the fields that concern the connection. */
import { TRACE_TOKEN_HEADER } from "../../trace/token.ts";
import { COLUMN, COLUMN_BITS, kindsByRow, NAMES, NEXT, START } from "../message/field-names.ts";
import type { HeaderList, Latin1 } from "../message/message.ts";
import { COLON, CR, type HeadError, invalid, isBlank, LF, SP, TAB, VALUE } from "../message/syntax.ts";
import { HEAD_BYTES } from "./head-bytes.ts";

/** What is done with a field besides reading it. */
const PASS = 0;
const DROP = 1;
const HOST = 2;
const CONTENT_LENGTH = 3;
const TRANSFER_ENCODING = 4;
const CONNECTION = 5;
const UPGRADE = 6;
const TE = 7;
const EXPECT = 8;
const TRACE_TOKEN = 9;
const FORWARDED = 10;
const LOOP = 11;

/** Field kinds by row of the name automaton; which fields are special depends on the kind of section. */
type FieldKinds = Uint8Array;

export const REQUEST_FIELDS: FieldKinds = kindsByRow({
  host: HOST,
  "content-length": CONTENT_LENGTH,
  "transfer-encoding": TRANSFER_ENCODING,
  connection: CONNECTION,
  upgrade: UPGRADE,
  te: TE,
  expect: EXPECT,
  "keep-alive": DROP,
  "proxy-authenticate": DROP,
  "proxy-connection": DROP,
  trailer: DROP,
  forwarded: FORWARDED,
  "x-forwarded-client-cert": FORWARDED,
  "x-forwarded-for": FORWARDED,
  "x-forwarded-host": FORWARDED,
  "x-forwarded-port": FORWARDED,
  "x-forwarded-proto": FORWARDED,
  // Set by the gateway only: backends learn from it that they may have received the request before.
  "x-retry-attempt": DROP,
  [TRACE_TOKEN_HEADER]: TRACE_TOKEN,
  "cdn-loop": LOOP,
});

export const RESPONSE_FIELDS: FieldKinds = kindsByRow({
  "content-length": CONTENT_LENGTH,
  "transfer-encoding": TRANSFER_ENCODING,
  connection: CONNECTION,
  upgrade: UPGRADE,
  te: DROP,
  "keep-alive": DROP,
  "proxy-connection": DROP,
});

const NOT_IN_TRAILERS = new Set(
  `age authorization cache-control cdn-loop content-encoding content-range content-type cookie date expect expires
  forwarded host if-match if-modified-since if-none-match if-range if-unmodified-since keep-alive location max-forwards
  origin pragma proxy-authenticate proxy-authorization proxy-connection range retry-after set-cookie te trailer
  vary via warning www-authenticate x-api-key x-forwarded-client-cert x-forwarded-for x-forwarded-host x-forwarded-port
  x-forwarded-proto x-real-ip x-retry-attempt ${TRACE_TOKEN_HEADER}`.split(/\s+/),
);
const FRAMING = {
  "content-length": CONTENT_LENGTH,
  "transfer-encoding": TRANSFER_ENCODING,
  connection: CONNECTION,
  upgrade: UPGRADE,
};

/**
 * A trailer must not change how the message is routed, authenticated or understood (RFC 9110 6.5.1): those are dropped. Fields
 * about framing and connection are kept apart for the caller to reject: some parsers apply them here too.
 */
export const TRAILER_FIELDS: FieldKinds = kindsByRow({
  ...Object.fromEntries([...NOT_IN_TRAILERS].map((name) => [name, DROP])),
  ...FRAMING,
});

/** Whether a trailer of this name, lower-case, must not be passed on, whatever the version of HTTP. */
export function forbiddenInTrailers(name: string): boolean {
  return NOT_IN_TRAILERS.has(name) || Object.hasOwn(FRAMING, name);
}

const TOO_MANY: HeadError = { code: "TG_HEAD_TOO_LARGE", detail: "too many header fields" };
const FOLDED = invalid("folded header line");
const EMPTY_NAME = invalid("empty header name");
const BAD_NAME = invalid("invalid character in a header name");
const SPACE_BEFORE_COLON = invalid("space before the colon of a header");
const NO_COLON = invalid("header line without a colon");
const BARE_CR = invalid("CR without LF");
const BARE_LF = invalid("LF without CR");
const BAD_VALUE = invalid("control character in a header value");
const TWO_HOSTS = invalid("more than one Host");
const TWO_LENGTHS = invalid("more than one Content-Length");
const TWO_CODINGS = invalid("more than one Transfer-Encoding");
const TRAILING_BYTES = invalid("bytes after the end of the header section");

/** What a section contained: the list to pass on and the raw values of the special fields, undefined when absent. */
export class FieldSection {
  headers: HeaderList = [];
  /** Names as received, one for each field of `headers`; null unless asked for. */
  rawNames: string[] | null = null;
  host: string | undefined;
  contentLength: string | undefined;
  transferEncoding: string | undefined;
  /** Several Connection, Upgrade, TE or Expect fields are joined by commas (RFC 9110 5.3). */
  connection: string | undefined;
  upgrade: string | undefined;
  te: string | undefined;
  expect: string | undefined;
  /** Token of the watcher that the request belongs to: the first one sent, `` for none. */
  traceToken = "";
  /** CDN-Loop (RFC 8586); several are joined by commas. `` for none. */
  loop = "";

  /** There is `Forwarded` or a field whose name begins with X-Forwarded-. */
  hasForwarded = false;
  /** A name has an underscore. */
  hasUnderscore = false;

  reset(preserveCase: boolean): void {
    this.headers = [];
    this.rawNames = preserveCase ? [] : null;
    this.host = undefined;
    this.contentLength = undefined;
    this.transferEncoding = undefined;
    this.connection = undefined;
    this.upgrade = undefined;
    this.te = undefined;
    this.expect = undefined;
    this.hasForwarded = false;
    this.hasUnderscore = false;
    this.traceToken = "";
    this.loop = "";
  }
}

/**
 * Reads the fields of `text`, latin1, from `start`; its last two characters must be the CRLF of the empty line. `bytes` is
 * what `HEAD_BYTES.load(text)` returned. `section` is reset first. Every byte is checked; the returned error, if any, is the
 * first one met.
 */
export function parseFields(
  text: string,
  bytes: Buffer,
  start: number,
  maxFields: number,
  kinds: FieldKinds,
  preserveCase: boolean,
  section: FieldSection,
): HeadError | undefined {
  section.reset(preserveCase);
  // One loop for all fields; nothing is called for a field that is not special. Measured: see head-bytes.ts.
  const { headers, rawNames } = section;
  let fieldsLeft = maxFields;
  let i = start;
  for (;;) {
    const nameStart = i;
    let row = START;
    let column = COLUMN[bytes[i] as number] as number;
    while (column > 0) {
      row = NEXT[(row << COLUMN_BITS) | column] as number;
      column = COLUMN[bytes[++i] as number] as number;
    }
    const nameEnd = i;
    let code = bytes[i] as number;
    if (code !== COLON || nameEnd === nameStart) {
      if (code !== CR || nameEnd !== nameStart || bytes[i + 1] !== LF) return nameError(bytes, nameStart, i);
      return i + 2 === text.length ? undefined : TRAILING_BYTES;
    }
    // Counted before the value is read, so that a limit on fields is a limit on work.
    if (--fieldsLeft < 0) return TOO_MANY;

    code = bytes[++i] as number;
    while (code === SP || code === TAB) code = bytes[++i] as number;
    const valueStart = i;
    i = HEAD_BYTES.skipPlain(i);
    code = bytes[i] as number;
    while (VALUE[code] === 1) code = bytes[++i] as number;
    // A bare CR or LF ends a line for some parsers and not for others (RFC 9112 2.2): two messages out of one.
    if (code !== CR || bytes[i + 1] !== LF) return valueError(code);
    // White space around the value is not part of it (RFC 9110 5.5).
    let valueEnd = i;
    i += 2;
    while (valueEnd > valueStart && isBlank(bytes[valueEnd - 1] as number)) valueEnd--;
    // Latin1: every byte of it was checked by VALUE above.
    const value = text.slice(valueStart, valueEnd);

    const kind = kinds[row] as number;
    if (kind !== PASS) {
      const error = keepSpecial(section, kind, value);
      if (error !== undefined) return error;
      if (kind !== CONTENT_LENGTH && kind !== EXPECT && kind !== FORWARDED) continue;
    }
    headers.push(NAMES[row] ?? otherName(section, text.slice(nameStart, nameEnd)), value as Latin1);
    if (rawNames !== null) rawNames.push(text.slice(nameStart, nameEnd));
  }
}

/** A name that the automaton does not know, in lower case. No known name has an underscore. */
function otherName(section: FieldSection, written: string): string {
  const name = written.toLowerCase();
  if (name.includes("_")) section.hasUnderscore = true;
  else if (name.startsWith("x-forwarded-")) section.hasForwarded = true;
  return name;
}

function keepSpecial(section: FieldSection, kind: number, value: string): HeadError | undefined {
  switch (kind) {
    case HOST:
      // RFC 9112 3.2: two hops could each believe a different one.
      if (section.host !== undefined) return TWO_HOSTS;
      section.host = value;
      return undefined;
    case CONTENT_LENGTH:
      // RFC 9112 6.3: classic request smuggling; rejected even if both are equal.
      if (section.contentLength !== undefined) return TWO_LENGTHS;
      section.contentLength = value;
      return undefined;
    case TRANSFER_ENCODING:
      if (section.transferEncoding !== undefined) return TWO_CODINGS;
      section.transferEncoding = value;
      return undefined;
    case CONNECTION:
      section.connection = joined(section.connection, value);
      return undefined;
    case UPGRADE:
      section.upgrade = joined(section.upgrade, value);
      return undefined;
    case FORWARDED:
      section.hasForwarded = true;
      return undefined;
    case TE:
      section.te = joined(section.te, value);
      return undefined;
    case EXPECT:
      section.expect = joined(section.expect, value);
      return undefined;
    case TRACE_TOKEN:
      if (section.traceToken === "") section.traceToken = value;
      return undefined;
    case LOOP:
      section.loop = section.loop === "" ? value : `${section.loop}, ${value}`;
      return undefined;
    default:
      return undefined;
  }
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}

/** Why there is no field name followed by a colon at `start`; `at` is the first character that no token contains. */
function nameError(bytes: Buffer, start: number, at: number): HeadError {
  const code = bytes[at] as number;
  if (at === start) {
    if (isBlank(code)) return FOLDED;
    if (code === COLON) return EMPTY_NAME;
  }
  if (code === LF) return BARE_LF;
  if (code === CR) return bytes[at + 1] === LF ? NO_COLON : BARE_CR;
  return isBlank(code) ? SPACE_BEFORE_COLON : BAD_NAME;
}

function valueError(code: number): HeadError {
  if (code === LF) return BARE_LF;
  return code === CR ? BARE_CR : BAD_VALUE;
}
