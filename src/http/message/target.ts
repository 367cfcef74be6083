/** Parses a request target and Host (RFC 9112 section 3.2), strictly. */
import { isIPv6 } from "node:net";
import { type HeadError, invalid } from "./syntax.ts";

/** Where the parts of a target go; one instance may serve many requests. */
export interface TargetParts {
  /** `host[:port]` as received, without a dot after the name; `` for HTTP/1.0 without Host. */
  authority: string;
  /** Begins with `/`; `*` for `OPTIONS *`; `` for CONNECT. */
  path: string;
  /** `` or begins with `?`. */
  search: string;
  /** Changed only when the target is an absolute URI; preset it to that of the connection. */
  scheme: "http" | "https";
}

const NO_HOST = invalid("HTTP/1.1 request without Host");
const BAD_HOST = invalid("Host is not host[:port]");
const BAD_FORM = invalid("the request target is neither a path nor an http or https URI");
const BAD_ASTERISK = invalid("the request target * is for OPTIONS only");
const BAD_CONNECT = invalid("the target of CONNECT is not host:port");
const BAD_PATH = invalid("invalid character in the path");
const BAD_ESCAPE = invalid("invalid percent-encoding in the path");
const DOT_SEGMENT = invalid("dot segment in the path");
const BAD_QUERY = invalid("invalid character in the query");

const PERCENT = 0x25;
const DOT = 0x2e;
const SLASH = 0x2f;
const COLON = 0x3a;
const QUESTION = 0x3f;
const BRACKET = 0x5b;

/** Kinds of characters of a path. */
const ORDINARY = 1;
const SPECIAL = 2;

const PATH = new Uint8Array(256);
/** 1 for what a query may hold. Browsers send `{}|\^` and the backquote there as they are. */
const QUERY = new Uint8Array(256);
/** 1 for the characters of a host name: letters, digits and `-._~`. */
const HOST = new Uint8Array(256);
/** Value of a hexadecimal digit plus 1. */
const HEX = new Uint8Array(256);

for (let code = 0x21; code < 0x7f; code++) {
  const character = String.fromCharCode(code);
  if (!'"<>#'.includes(character)) QUERY[code] = 1;
  if (!'"<>#\\'.includes(character)) PATH[code] = "/?%.;".includes(character) ? SPECIAL : ORDINARY;
  if (/[0-9A-Za-z._~-]/.test(character)) HOST[code] = 1;
  if (/[0-9A-Fa-f]/.test(character)) HEX[code] = Number.parseInt(character, 16) + 1;
}

/**
 * Splits `target` into `out`. `hostHeader` and `minor` are those of the head. Returns undefined, or why the request is rejected.
 * The authority of an absolute URI takes precedence over Host (RFC 9112 3.2.2), which must still be valid.
 */
export function parseTarget(
  method: string,
  target: string,
  hostHeader: string | undefined,
  minor: 0 | 1,
  out: TargetParts,
): HeadError | undefined {
  if (hostHeader === undefined && minor === 1) return NO_HOST;
  const authority = hostHeader === undefined ? "" : parseAuthority(hostHeader);
  if (authority === undefined) return BAD_HOST;
  out.authority = authority;
  out.search = "";
  if (method === "CONNECT") return parseAuthorityForm(target, out);
  if (target.charCodeAt(0) === SLASH) return parsePath(target, 0, out);
  if (target === "*") {
    out.path = "*";
    return method === "OPTIONS" ? undefined : BAD_ASTERISK;
  }
  return parseAbsoluteForm(method, target, out);
}

function parseAuthorityForm(target: string, out: TargetParts): HeadError | undefined {
  out.path = "";
  const hasPort = target.lastIndexOf(":") > target.lastIndexOf("]");
  const authority = hasPort ? readAuthority(target, 0, target.length) : undefined;
  if (authority === undefined) return BAD_CONNECT;
  out.authority = authority;
  return undefined;
}

function parseAbsoluteForm(method: string, target: string, out: TargetParts): HeadError | undefined {
  const schemeEnd = target.indexOf("://");
  const scheme = schemeEnd === 4 || schemeEnd === 5 ? target.slice(0, schemeEnd).toLowerCase() : "";
  if (scheme !== "http" && scheme !== "https") return BAD_FORM;
  const start = schemeEnd + 3;
  let end = start;
  while (end < target.length && target.charCodeAt(end) !== SLASH && target.charCodeAt(end) !== QUESTION) end++;
  const authority = readAuthority(target, start, end);
  if (authority === undefined) return BAD_HOST;
  out.scheme = scheme;
  out.authority = authority;
  if (end === target.length) {
    // RFC 9112 3.2.4: this is how OPTIONS * reaches a proxy.
    out.path = method === "OPTIONS" ? "*" : "/";
    return undefined;
  }
  if (target.charCodeAt(end) === SLASH) return parsePath(target, end, out);
  out.path = "/";
  return parseQuery(target, end, out);
}

/**
 * Checks the path of `target` from `start`, which is a slash. Dot segments are rejected even if written `%2e`, ended by `;` or
 * delimited by an encoded slash or backslash: some servers resolve those, so a rule for one path would be applied to another.
 */
function parsePath(target: string, start: number, out: TargetParts): HeadError | undefined {
  /** Dots of the segment so far, or a large number when it has anything else. */
  let dots = 0;
  let i = start + 1;
  for (; i < target.length; i++) {
    const code = target.charCodeAt(i);
    const kind = PATH[code];
    if (kind === ORDINARY) {
      dots = 3;
    } else if (code === SLASH) {
      if (dots === 1 || dots === 2) return DOT_SEGMENT;
      dots = 0;
    } else if (code === DOT) {
      dots++;
    } else if (code === QUESTION) {
      break;
    } else if (code === PERCENT) {
      const byte = escapedByte(target, i);
      if (byte <= 0) return BAD_ESCAPE;
      i += 2;
      if (byte === DOT) {
        dots++;
      } else if (byte === SLASH || byte === 0x5c) {
        if (dots === 1 || dots === 2) return DOT_SEGMENT;
        dots = 0;
      } else {
        dots = 3;
      }
    } else if (kind === SPECIAL) {
      if (dots === 1 || dots === 2) return DOT_SEGMENT;
      dots = 3;
    } else {
      return BAD_PATH;
    }
  }
  if (dots === 1 || dots === 2) return DOT_SEGMENT;
  if (i === target.length) {
    out.path = start === 0 ? target : target.slice(start);
    return undefined;
  }
  out.path = target.slice(start, i);
  return parseQuery(target, i, out);
}

/** `host[:port]` as `parseTarget` understands it, without the dot that may end the name; undefined when it is something else. */
export function parseAuthority(text: string): string | undefined {
  return readAuthority(text, 0, text.length);
}

/** The byte that `%xx` at `at` encodes, or -1 when it is malformed. */
function escapedByte(target: string, at: number): number {
  const high = HEX[target.charCodeAt(at + 1)] ?? 0;
  const low = HEX[target.charCodeAt(at + 2)] ?? 0;
  return high === 0 || low === 0 ? -1 : (high - 1) * 16 + low - 1;
}

function parseQuery(target: string, at: number, out: TargetParts): HeadError | undefined {
  for (let i = at; i < target.length; i++) if (QUERY[target.charCodeAt(i)] !== 1) return BAD_QUERY;
  out.search = target.slice(at);
  return undefined;
}

/**
 * `text[start, end)` when it is `host` or `host:port` with a port of 1 to 65535, else undefined. Percent-encodings and
 * `!$&'()*+,;=`, which RFC 3986 allows in a registered name, are rejected: no host has them and servers disagree about them. The
 * dot that ends an absolute name (RFC 1034 3.1) is dropped: `a.` and `a` are the same host, and a rule for one must hold for the
 * other.
 */
function readAuthority(text: string, start: number, end: number): string | undefined {
  let i = start;
  if (text.charCodeAt(start) === BRACKET) {
    i = text.indexOf("]", start);
    if (i < 0 || i >= end) return undefined;
    const address = text.slice(start + 1, i++);
    // A zone means nothing outside the machine that sent it.
    if (address.includes("%") || !isIPv6(address)) return undefined;
  } else {
    while (i < end && HOST[text.charCodeAt(i)] === 1) i++;
    if (i === start) return undefined;
  }
  if (i !== end && (text.charCodeAt(i) !== COLON || !isPort(text, i + 1, end))) return undefined;
  if (text.charCodeAt(i - 1) !== DOT) return text.slice(start, end);
  return i - 1 === start ? undefined : text.slice(start, i - 1) + text.slice(i, end);
}

function isPort(text: string, start: number, end: number): boolean {
  if (end === start || end - start > 5) return false;
  let port = 0;
  for (let i = start; i < end; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return false;
    port = port * 10 + digit;
  }
  return port >= 1 && port <= 65535;
}
