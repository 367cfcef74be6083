/**
 * Reads the field section of an HTTP/2 request (RFC 9113 8.2, 8.3) as strictly as h1/parse-head.ts reads a head of HTTP/1.1, into the
 * same message type: the code behind it does not depend on the client's version.
 */
import { TRACE_TOKEN_HEADER } from "../../trace/token.ts";
import { parseLength } from "../h1/framing.ts";
import { NAMES } from "../message/field-names.ts";
import {
  decimal,
  type Fields,
  type HeaderList,
  type HttpRequest,
  hostOf,
  type Latin1,
  madeOf,
} from "../message/message.ts";
import { type HeadError, isToken } from "../message/syntax.ts";
import { parseAuthority, parseTarget } from "../message/target.ts";
import type { ConnectionLimits } from "../stream.ts";

/** Why a request is rejected. A malformed request (RFC 9113 8.1.1) gets no response: its stream is reset. */
export interface RequestError extends HeadError {
  readonly malformed?: true;
}

/** What the engine needs of a head besides the message. */
interface RequestHead {
  /** Bytes of the body; -1 without Content-Length. */
  readonly contentLength: number;
  /** `TE: trailers`. */
  readonly trailersAccepted: boolean;
  readonly hasForwarded: boolean;
  readonly hasUnderscore: boolean;
  readonly traceToken: string;
  readonly loop: string;
  /** Protocol of an extended CONNECT (RFC 8441 4); `` for none. */
  readonly protocol: string;
  /** Value of Priority (RFC 9218 5); `` for none. */
  readonly priority: string;
}

type Limits = Pick<ConnectionLimits, "maxHeaders" | "maxTargetSize" | "maxRequestBodySize" | "underscores">;

/** How a field is treated. */
const PASS = 0;
const DROP = 1;
const HOST = 2;
const CONTENT_LENGTH = 3;
const OF_CONNECTION = 4;
const TE = 5;
const TRACE_TOKEN = 6;
const LOOP = 7;
/** From here on: read, and passed on as well. */
const EXPECT = 8;
const FORWARDED = 9;
const COOKIE = 10;
const PRIORITY = 11;

/** By name: the fields that HTTP/1.1 treats in the same way (h1/fields.ts), and those that HTTP/2 must not carry (RFC 9113 8.2.2). */
const KINDS: ReadonlyMap<string, number> = new Map([
  ...NAMES.flatMap((name): [string, number][] => (name === undefined ? [] : [[name, PASS]])),
  ["host", HOST],
  ["content-length", CONTENT_LENGTH],
  ["te", TE],
  ["expect", EXPECT],
  ["cookie", COOKIE],
  ["priority", PRIORITY],
  [TRACE_TOKEN_HEADER, TRACE_TOKEN],
  ["cdn-loop", LOOP],
  ...["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"].map(kind(OF_CONNECTION)),
  ...["http2-settings", "proxy-authenticate", "trailer", "x-retry-attempt"].map(kind(DROP)),
  ...["forwarded", "x-forwarded-client-cert", "x-forwarded-for", "x-forwarded-host"].map(kind(FORWARDED)),
  ...["x-forwarded-port", "x-forwarded-proto"].map(kind(FORWARDED)),
]);

function kind(value: number): (name: string) => [string, number] {
  return (name) => [name, value];
}

const MAX_METHOD_LENGTH = 32;
const COLON = 0x3a;
const SLASH = 0x2f;

const PSEUDO_AFTER_FIELD = malformed("pseudo-header field after a header field");
const UNKNOWN_PSEUDO = malformed("unknown pseudo-header field");
const REPEATED_PSEUDO = malformed("repeated pseudo-header field");
const NO_METHOD = malformed("no :method");
const BAD_METHOD = malformed(":method is not a token of 1 to 32 characters");
const BAD_SCHEME = malformed(":scheme is neither http nor https");
const BAD_PATH = malformed(":path is neither a path nor, for OPTIONS, *");
const BAD_CONNECT = malformed("CONNECT has an :authority and neither :scheme nor :path");
const CONNECT_WITH_BODY = malformed("Content-Length above 0 for a tunnel");
const PROTOCOL_WITHOUT_CONNECT = malformed(":protocol without CONNECT");
const NO_AUTHORITY = malformed("neither :authority nor Host");
const USER_INFO = malformed("user information in :authority");
const OTHER_HOST = malformed(":authority and Host differ");
const TWO_HOSTS = malformed("more than one Host");
const TWO_LENGTHS = malformed("more than one Content-Length");
const BAD_LENGTH = malformed("Content-Length is not one decimal number below 2^53");
const LENGTH_WITHOUT_BODY = malformed("Content-Length above 0 without a body");
const CONNECTION_FIELD = malformed("a header field of the connection, which HTTP/2 does not have");
const BAD_TE = malformed("TE is not trailers");
const UNDERSCORE: RequestError = { code: "TG_INVALID_REQUEST", detail: "underscore in the name of a header" };
const TOO_MANY: RequestError = { code: "TG_HEAD_TOO_LARGE", detail: "too many header fields" };
const TARGET_TOO_LONG: RequestError = { code: "TG_URI_TOO_LONG", detail: "the request target is too long" };
const BAD_EXPECTATION: RequestError = { code: "TG_EXPECTATION_FAILED", detail: "only 100-continue is supported" };
const UNKNOWN_PROTOCOL: RequestError = { code: "TG_UNKNOWN_PROTOCOL", detail: "only websocket is supported" };

/** The error of a request that is malformed in the sense of RFC 9113 8.1.1. Each is made once, at load. */
export function malformed(detail: string): RequestError {
  return { code: "TG_INVALID_REQUEST", detail, malformed: true };
}

/** The one reader of a thread: reading never yields, and its fields describe the last request until the next one is read. */
export class RequestReader implements RequestHead {
  contentLength = -1;
  trailersAccepted = false;
  hasForwarded = false;
  hasUnderscore = false;
  traceToken = "";
  loop = "";
  protocol = "";
  priority = "";
  #method = "";
  #scheme = "";
  #path: string | undefined;
  #authority: string | undefined;
  #host: string | undefined;

  /**
   * The request of `fields`, or why it is rejected. `fields` is a flat list whose names and values the decoder has checked for
   * invalid characters. `scheme` is that of the connection, which replaces the client's `:scheme`. `endStream`: no body follows.
   */
  read(fields: Fields, endStream: boolean, scheme: HttpRequest["scheme"], limits: Limits): HttpRequest | RequestError {
    this.#reset();
    const first = this.#readPseudo(fields);
    if (typeof first !== "number") return first;
    const headers = this.#readHeaders(fields, first, limits);
    if (!Array.isArray(headers)) return headers;
    const request: HttpRequest = {
      method: this.#method,
      scheme,
      authority: "",
      path: "",
      search: "",
      version: "HTTP/2",
      headers,
    };
    const error = this.#interpret(request, endStream, limits);
    return error ?? request;
  }

  #reset(): void {
    this.contentLength = -1;
    this.trailersAccepted = false;
    this.hasForwarded = false;
    this.hasUnderscore = false;
    this.traceToken = "";
    this.loop = "";
    this.protocol = "";
    this.priority = "";
    this.#method = "";
    this.#scheme = "";
    this.#path = undefined;
    this.#authority = undefined;
    this.#host = undefined;
  }

  /** Returns the index of the first header field. */
  #readPseudo(fields: readonly string[]): number | RequestError {
    let i = 0;
    for (; i < fields.length; i += 2) {
      const name = fields[i] as string;
      const value = fields[i + 1] as string;
      if (name.charCodeAt(0) !== COLON) return i;
      switch (name) {
        case ":method":
          if (this.#method !== "") return REPEATED_PSEUDO;
          if (value.length > MAX_METHOD_LENGTH || !isToken(value)) return BAD_METHOD;
          this.#method = value;
          break;
        case ":path":
          if (this.#path !== undefined) return REPEATED_PSEUDO;
          this.#path = value;
          break;
        case ":scheme":
          if (this.#scheme !== "") return REPEATED_PSEUDO;
          if (value !== "http" && value !== "https") return BAD_SCHEME;
          this.#scheme = value;
          break;
        case ":authority":
          if (this.#authority !== undefined) return REPEATED_PSEUDO;
          this.#authority = value;
          break;
        case ":protocol":
          if (this.protocol !== "") return REPEATED_PSEUDO;
          this.protocol = value;
          break;
        default:
          return UNKNOWN_PSEUDO;
      }
    }
    return i;
  }

  #readHeaders(fields: Fields, first: number, limits: Limits): HeaderList | RequestError {
    const headers = madeOf(fields, []);
    let left = limits.maxHeaders;
    let cookieAt = -1;
    for (let i = first; i < fields.length; i += 2) {
      const name = fields[i] as string;
      // The decoder has checked it.
      let value = fields[i + 1] as Latin1;
      const known = KINDS.get(name);
      if (known !== PASS) {
        if (known === undefined) {
          if (name.charCodeAt(0) === COLON) return PSEUDO_AFTER_FIELD;
          if (name.includes("_")) {
            if (limits.underscores === "reject") return UNDERSCORE;
            if (limits.underscores === "drop") continue;
            this.hasUnderscore = true;
          } else if (name.startsWith("x-forwarded-")) this.hasForwarded = true;
        } else if (known === COOKIE) {
          // Crumbs of one field, divided to compress better (RFC 9113 8.2.3); HTTP/1.1 has one Cookie only.
          if (cookieAt !== -1) {
            headers[cookieAt + 1] += `; ${value}`;
            continue;
          }
          cookieAt = headers.length;
        } else {
          const error = this.#keepSpecial(known, value);
          if (error !== undefined) return error;
          // Leading zeros are legal, but a peer may read them as octal, so they are not passed on.
          if (known === CONTENT_LENGTH) value = decimal(this.contentLength);
          else if (known < EXPECT) continue;
        }
      }
      if (--left < 0) return TOO_MANY;
      headers.push(name, value);
    }
    return headers;
  }

  #keepSpecial(known: number, value: string): RequestError | undefined {
    switch (known) {
      case HOST:
        if (this.#host !== undefined) return TWO_HOSTS;
        this.#host = value;
        return undefined;
      case CONTENT_LENGTH:
        if (this.contentLength !== -1) return TWO_LENGTHS;
        this.contentLength = parseLength(value);
        return this.contentLength < 0 ? BAD_LENGTH : undefined;
      case OF_CONNECTION:
        return CONNECTION_FIELD;
      case TE:
        if (value.toLowerCase() !== "trailers") return BAD_TE;
        this.trailersAccepted = true;
        return undefined;
      case EXPECT:
        return value.toLowerCase() === "100-continue" ? undefined : BAD_EXPECTATION;
      case TRACE_TOKEN:
        if (this.traceToken === "") this.traceToken = value;
        return undefined;
      case LOOP:
        this.loop = this.loop === "" ? value : `${this.loop}, ${value}`;
        return undefined;
      case FORWARDED:
        this.hasForwarded = true;
        return undefined;
      case PRIORITY:
        this.priority = value;
        return undefined;
      default:
        return undefined;
    }
  }

  /** Sets the target of `request` and checks what the fields say together. */
  #interpret(request: HttpRequest, endStream: boolean, limits: Limits): RequestError | undefined {
    if (this.#method === "") return NO_METHOD;
    if (endStream && this.contentLength > 0) return LENGTH_WITHOUT_BODY;
    const error = this.#interpretTarget(request, limits);
    if (error !== undefined) return error;
    const limit = limits.maxRequestBodySize;
    if (limit === 0 || this.contentLength <= limit) return undefined;
    return { code: "TG_BODY_TOO_LARGE", detail: `more than ${limit} bytes` };
  }

  #interpretTarget(request: HttpRequest, limits: Limits): RequestError | undefined {
    const method = this.#method;
    const path = this.#path;
    const authority = this.#authority ?? this.#host;
    if (this.#authority?.includes("@") === true) return USER_INFO;
    if (method === "CONNECT" && this.protocol === "") {
      if (this.#authority === undefined || this.#scheme !== "" || path !== undefined) return BAD_CONNECT;
      return this.#otherHost(request.scheme) ?? parseTarget(method, this.#authority, this.#authority, 1, request);
    }
    if (this.protocol !== "" && method !== "CONNECT") return PROTOCOL_WITHOUT_CONNECT;
    if (this.#scheme === "") return BAD_SCHEME;
    if (path === undefined || (path.charCodeAt(0) !== SLASH && (path !== "*" || method !== "OPTIONS"))) return BAD_PATH;
    if (authority === undefined || authority === "") return NO_AUTHORITY;
    if (path.length > limits.maxTargetSize) return TARGET_TOO_LONG;
    if (this.protocol !== "") {
      if (this.protocol !== "websocket") return UNKNOWN_PROTOCOL;
      if (this.contentLength > 0) return CONNECT_WITH_BODY;
      // RFC 8441 5: the counterpart of an HTTP/1.1 upgrade, which is a GET.
      request.method = "GET";
    }
    return this.#otherHost(request.scheme) ?? parseTarget(request.method, path, authority, 1, request);
  }

  /** RFC 9113 8.3.1: a later hop could route by a Host that differs from :authority. */
  #otherHost(scheme: HttpRequest["scheme"]): RequestError | undefined {
    const host = this.#host;
    const authority = this.#authority;
    if (host === undefined || authority === undefined || host === authority) return undefined;
    return normalized(host, scheme) === normalized(authority, scheme) ? undefined : OTHER_HOST;
  }
}

/** For comparison (RFC 9110 4.2.3): in lower case, with the port. */
function normalized(authority: string, scheme: HttpRequest["scheme"]): string {
  const text = parseAuthority(authority);
  if (text === undefined) return authority;
  const host = hostOf(text);
  return host.length === text.length ? `${host}:${scheme === "https" ? 443 : 80}` : text.toLowerCase();
}
