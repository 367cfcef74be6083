/** What the special fields of a head mean: length of the body, life of the connection, upgrade (RFC 9110 7.6.1, RFC 9112 6). */
import { removeHeader } from "../message/message.ts";
import { type HeadError, invalid, isBlank, isToken } from "../message/syntax.ts";
import type { FieldSection } from "./fields.ts";

const BOTH_LENGTHS = invalid("Content-Length together with Transfer-Encoding");
const BAD_LENGTH = invalid("Content-Length is not one decimal number below 2^53");
const BAD_CODING = invalid("Transfer-Encoding is not exactly chunked");
const CODING_BEFORE_HTTP_1_1 = invalid("Transfer-Encoding in an HTTP/1.0 message");
const UNKNOWN_CODING: HeadError = { code: "TG_UNKNOWN_CODING", detail: "only chunked is supported" };
const BAD_CONNECTION = invalid("Connection is not a list of tokens");
const TOO_MANY_OPTIONS = invalid("Connection lists too many options");
const PROTECTED_NOMINATED = invalid("Connection names a field that frames or routes the message");

/** Each option costs a search through the fields, so the cost of a head full of them would be quadratic. */
const MAX_CONNECTION_OPTIONS = 32;

/** Fields that Connection must not remove: every later hop would see a different message (request smuggling). */
const PROTECTED: ReadonlySet<string> = new Set(["content-length", "host", "transfer-encoding"]);

/** The part of a head that `interpretFraming` fills. */
interface Framing {
  minor: 0 | 1;
  contentLength: number;
  chunked: boolean;
  keepAlive: boolean;
  upgrade: string;
}

/**
 * Sets the framing of `head` from `section` (`head.minor` must be set) and removes the fields that Connection nominates.
 */
export function interpretFraming(section: FieldSection, head: Framing): HeadError | undefined {
  head.contentLength = -1;
  head.chunked = false;
  head.upgrade = "";
  head.keepAlive = head.minor === 1;
  const { contentLength, transferEncoding, connection } = section;
  if (transferEncoding !== undefined) {
    if (contentLength !== undefined) return BOTH_LENGTHS;
    if (head.minor === 0) return CODING_BEFORE_HTTP_1_1;
    const error = codingError(transferEncoding);
    if (error !== undefined) return error;
    head.chunked = true;
  } else if (contentLength !== undefined) {
    const length = parseLength(contentLength);
    if (length < 0) return BAD_LENGTH;
    if (contentLength.charCodeAt(0) === 0x30 && contentLength.length > 1) normalizeLength(section, length);
    head.contentLength = length;
  }
  if (connection === undefined) return undefined;
  // The two values that nearly every message has.
  if (connection === "keep-alive") {
    head.keepAlive = true;
    return undefined;
  }
  if (connection === "close") {
    head.keepAlive = false;
    return undefined;
  }
  return interpretConnection(connection, section, head);
}

/** Leading zeros are legal, but a peer may read them as octal, so they are not passed on. */
function normalizeLength(section: FieldSection, length: number): void {
  const at = section.headers.indexOf("content-length");
  section.headers[at + 1] = String(length);
}

/** The number, or -1 unless `text` is 1 to 16 digits that make a safe integer. */
export function parseLength(text: string): number {
  if (text === "" || text.length > 16) return -1;
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    length = length * 10 + digit;
  }
  return length <= Number.MAX_SAFE_INTEGER ? length : -1;
}

/**
 * Only a lone `chunked` is read. 501 is for valid names of unknown codings (RFC 9112 6.1); what a more lenient parser could read as
 * `chunked` is 400.
 */
function codingError(value: string): HeadError | undefined {
  if (value === "chunked") return undefined;
  const codings = value.toLowerCase().split(",").map(trimBlanks);
  if (codings.length === 1 && codings[0] === "chunked") return undefined;
  const last = codings.length - 1;
  const known = codings.every((coding, i) => isToken(coding) && (coding !== "chunked" || i === last));
  return known ? UNKNOWN_CODING : BAD_CODING;
}

function interpretConnection(value: string, section: FieldSection, head: Framing): HeadError | undefined {
  let close = false;
  let keepAlive = false;
  let upgrade = false;
  const elements = value.split(",");
  if (elements.length > MAX_CONNECTION_OPTIONS) return TOO_MANY_OPTIONS;
  for (const element of elements) {
    const option = trimBlanks(element).toLowerCase();
    // Empty elements of a list are to be ignored (RFC 9110 5.6.1.2).
    if (option === "") continue;
    if (!isToken(option)) return BAD_CONNECTION;
    if (PROTECTED.has(option)) return PROTECTED_NOMINATED;
    if (option === "close") close = true;
    else if (option === "keep-alive") keepAlive = true;
    else if (option === "upgrade") upgrade = true;
    else removeField(section, option);
  }
  head.keepAlive = !close && (keepAlive || head.minor === 1);
  // HTTP/1.0 has no upgrade (RFC 9110 7.8); after a body it is unclear which bytes belong to the new protocol.
  const upgradable = upgrade && head.minor === 1 && !head.chunked && head.contentLength <= 0;
  if (upgradable && section.upgrade !== undefined) head.upgrade = withoutHttp2(section.upgrade);
  return undefined;
}

/**
 * HTTP/2 over an upgraded connection would carry further requests past all routes and policies ("h2c smuggling"). The upgrade to it
 * is obsolete (RFC 9113 3.1), and ignoring an upgrade is always allowed (RFC 9110 7.8).
 */
function withoutHttp2(protocols: string): string {
  if (!/h2|http/i.test(protocols)) return protocols;
  const left = protocols.split(",").filter((each) => !/^(h2c?|http)(\/|$)/.test(trimBlanks(each).toLowerCase()));
  return left.map(trimBlanks).join(", ");
}

function removeField(section: FieldSection, name: string): void {
  const { headers, rawNames } = section;
  if (rawNames !== null) section.rawNames = rawNames.filter((_, i) => headers[2 * i] !== name);
  removeHeader(headers, name);
}

/** True when the comma-separated list `value` has `member` (lower-case, a token) without parameters. */
export function listHas(value: string, member: string): boolean {
  return value.split(",").some((element) => trimBlanks(element).toLowerCase() === member);
}

/** Removes SP and HTAB from both ends; unlike `trim` no other white space. */
function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}
