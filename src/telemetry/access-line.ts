/**
 * Writes a line of the access log as bytes, where the batch collects them. A line made as a string costs more:
 * V8 builds a tree of its pieces, makes one string of it, and encodes that.
 */
import { formatTimestamp } from "../base/dates.ts";
import { type LogFormat, quote, safeJson } from "../base/log.ts";
import type { AccessRecord } from "./access-record.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const TILDE = 0x7e;
const ZERO = 0x30;
const POINT = 0x2e;
const BRACE = 0x7d;
const LINE_FEED = 0x0a;

/** Numbers up to this are written digit by digit. */
const MAX_INT32 = 0x7fff_ffff;
/** The longest escape of a UTF-16 code unit, such as `\u0007`; in UTF-8 it takes up to 3 bytes. */
const MAX_BYTES_PER_CODE_UNIT = 6;
/** An upper bound for all names, numbers and punctuation of a line together. */
const FIXED_BYTES = 1024;

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

/** What differs between the formats. Names include the separators around them. */
interface Style {
  readonly json: boolean;
  /** Before the time, and after it. */
  readonly begin: string;
  readonly scope: string;
  /** The head of the last line. */
  readonly head: { time: number; bytes: Uint8Array };
  readonly place: Mutable<Pick<AccessRecord, "gateway" | "listener" | "routeRule" | "route">> & { bytes: Uint8Array };
  /** What `writeOutcome` wrote for the last usual line. */
  readonly outcome: Mutable<Pick<AccessRecord, "version" | "status" | "protocol" | "reason">> & { bytes: Uint8Array };
  readonly names: Readonly<Record<Exclude<keyof AccessRecord, "time" | "code" | "origin">, Uint8Array>>;
}

const STYLES: Readonly<Record<LogFormat, Style>> = {
  text: styleOf(false, "", "\tinfo\trequest", (name) => ` ${name}=`),
  json: styleOf(true, `{"level":"info","time":"`, `","scope":"request"`, (name) => `,"${name}":`),
};

function styleOf(json: boolean, begin: string, scope: string, shown: (name: string) => string): Style {
  const bytes = (name: string): Uint8Array => new Uint8Array(Buffer.from(shown(name)));
  return {
    json,
    begin,
    scope,
    head: { time: Number.NaN, bytes: new Uint8Array(0) },
    place: {
      gateway: undefined,
      listener: undefined,
      routeRule: undefined,
      route: undefined,
      bytes: new Uint8Array(0),
    },
    outcome: { version: undefined, status: Number.NaN, protocol: "", reason: undefined, bytes: new Uint8Array(0) },
    names: {
      requestId: bytes("request.id"),
      gateway: bytes("gateway"),
      listener: bytes("listener"),
      routeRule: bytes("route_rule"),
      route: bytes("route"),
      endpoint: bytes("endpoint"),
      source: bytes("src.addr"),
      method: bytes("http.method"),
      host: bytes("http.host"),
      path: bytes("http.path"),
      version: bytes("http.version"),
      status: bytes("http.status"),
      grpcStatus: bytes("grpc.status"),
      sni: bytes("tls.sni"),
      traceId: bytes("trace.id"),
      spanId: bytes("span.id"),
      jwtSubject: bytes("jwt.sub"),
      protocol: bytes("protocol"),
      retryAttempt: bytes("retry.attempt"),
      error: bytes("error"),
      reason: bytes("reason"),
      shadow: bytes("shadow"),
      bytesReceived: bytes("bytes.received"),
      bytesSent: bytes("bytes.sent"),
      durationMs: bytes("duration"),
    },
  };
}

/** An upper bound for the bytes of the record's line. */
export function mostBytes(r: AccessRecord): number {
  const units =
    lengthOf(r.requestId) +
    lengthOf(r.gateway) +
    lengthOf(r.listener) +
    lengthOf(r.routeRule) +
    lengthOf(r.route) +
    lengthOf(r.endpoint) +
    lengthOf(r.source) +
    lengthOf(r.method) +
    lengthOf(r.host) +
    lengthOf(r.path) +
    lengthOf(r.version) +
    lengthOf(r.sni) +
    lengthOf(r.traceId) +
    lengthOf(r.spanId) +
    lengthOf(r.jwtSubject) +
    r.protocol.length +
    lengthOf(r.error) +
    lengthOf(r.reason) +
    (r.shadow === undefined ? 0 : lengthOf(shadowText(r.shadow)) + r.shadow.length);
  return FIXED_BYTES + units * MAX_BYTES_PER_CODE_UNIT;
}

function lengthOf(value: string | undefined): number {
  return value === undefined ? 0 : value.length;
}

/**
 * Writes the line with its line break to `bytes` from `at` on, where `mostBytes` have room; returns its end. Fields are in the
 * order of reference 3.29, with the bytes of both directions before the duration. Text: `<time>\tinfo\trequest k=v …`; JSON:
 * `level`, `time`, `scope`, then the fields. Durations are milliseconds: whole ones with their unit in text, numbers with up to
 * three decimals in JSON.
 */
export function writeAccessLine(r: AccessRecord, format: LogFormat, bytes: Buffer, at: number): number {
  const style = STYLES[format];
  const { json, names } = style;
  let end = writeHead(bytes, at, r.time, style);
  if (r.requestId !== undefined) end = writeText(bytes, end, names.requestId, r.requestId, json);
  end = writePlace(bytes, end, r, style);
  if (r.endpoint !== undefined) end = writeText(bytes, end, names.endpoint, r.endpoint, json);
  if (r.source !== undefined) end = writeText(bytes, end, names.source, r.source, json);
  if (r.method !== undefined) end = writeText(bytes, end, names.method, r.method, json);
  if (r.host !== undefined) end = writeText(bytes, end, names.host, r.host, json);
  if (r.path !== undefined) end = writeText(bytes, end, names.path, r.path, json);
  end = writeOutcome(bytes, end, r, style);
  end = writeNumber(bytes, end, r.bytesSent);
  end = copy(bytes, end, names.durationMs);
  if (json) {
    end = writeMilliseconds(bytes, end, r.durationMs);
    bytes[end++] = BRACE;
  } else end += bytes.write(durationText(r.durationMs), end, "latin1");
  bytes[end++] = LINE_FEED;
  return end;
}

/** The duration in a text line: whole milliseconds. */
export function durationText(durationMs: number): string {
  return `${Math.round(durationMs)}ms`;
}

/** The decisions of shadow policies in a text line. */
export function shadowText(decisions: readonly string[]): string {
  return decisions.join(" | ");
}

/** Names are short: a call of `set` would cost more. */
function copy(to: Buffer, at: number, from: Uint8Array): number {
  const { length } = from;
  for (let i = 0; i < length; i++) to[at + i] = from[i] ?? 0;
  return at + length;
}

// What many lines have in common is kept as bytes.

/** Writes everything up to the request id. */
function writeHead(bytes: Buffer, at: number, time: number, style: Style): number {
  const { head } = style;
  if (time !== head.time) {
    head.time = time;
    head.bytes = new Uint8Array(Buffer.from(style.begin + formatTimestamp(time) + style.scope));
  }
  bytes.set(head.bytes, at);
  return at + head.bytes.length;
}

/** Writes the fields from gateway to route. The names are those of the configuration, so comparing them compares pointers. */
function writePlace(bytes: Buffer, at: number, r: AccessRecord, { json, names, place }: Style): number {
  const { gateway, listener, routeRule, route } = r;
  if (
    route === place.route &&
    routeRule === place.routeRule &&
    listener === place.listener &&
    gateway === place.gateway
  ) {
    bytes.set(place.bytes, at);
    return at + place.bytes.length;
  }
  let end = at;
  if (gateway !== undefined) end = writeText(bytes, end, names.gateway, gateway, json);
  if (listener !== undefined) end = writeText(bytes, end, names.listener, listener, json);
  if (routeRule !== undefined) end = writeText(bytes, end, names.routeRule, routeRule, json);
  if (route !== undefined) end = writeText(bytes, end, names.route, route, json);
  place.gateway = gateway;
  place.listener = listener;
  place.routeRule = routeRule;
  place.route = route;
  place.bytes = new Uint8Array(bytes.subarray(at, end));
  return end;
}

/** Writes everything from the version to the name of the bytes sent, which is the same for most requests without a body. */
function writeOutcome(bytes: Buffer, at: number, r: AccessRecord, style: Style): number {
  const { outcome } = style;
  const usual =
    r.grpcStatus === undefined &&
    (r.sni === undefined || r.host !== undefined) &&
    r.traceId === undefined &&
    r.spanId === undefined &&
    r.jwtSubject === undefined &&
    r.retryAttempt === undefined &&
    r.error === undefined &&
    r.shadow === undefined &&
    r.bytesReceived === 0;
  if (
    usual &&
    r.status === outcome.status &&
    r.version === outcome.version &&
    r.protocol === outcome.protocol &&
    r.reason === outcome.reason
  ) {
    bytes.set(outcome.bytes, at);
    return at + outcome.bytes.length;
  }
  const end = writeOutcomeFields(bytes, at, r, style);
  if (usual) {
    outcome.status = r.status;
    outcome.version = r.version;
    outcome.protocol = r.protocol;
    outcome.reason = r.reason;
    outcome.bytes = new Uint8Array(bytes.subarray(at, end));
  }
  return end;
}

/** Writes it field by field. */
function writeOutcomeFields(bytes: Buffer, at: number, r: AccessRecord, { json, names }: Style): number {
  let end = at;
  if (r.version !== undefined) end = writeText(bytes, end, names.version, r.version, json);
  if (r.status !== undefined) end = writeNumber(bytes, copy(bytes, end, names.status), r.status);
  if (r.grpcStatus !== undefined) end = writeNumber(bytes, copy(bytes, end, names.grpcStatus), r.grpcStatus);
  if (r.sni !== undefined && r.host === undefined) end = writeText(bytes, end, names.sni, r.sni, json);
  if (r.traceId !== undefined) end = writeText(bytes, end, names.traceId, r.traceId, json);
  if (r.spanId !== undefined) end = writeText(bytes, end, names.spanId, r.spanId, json);
  if (r.jwtSubject !== undefined) end = writeText(bytes, end, names.jwtSubject, r.jwtSubject, json);
  end = writeText(bytes, end, names.protocol, r.protocol, json);
  if (r.retryAttempt !== undefined && r.retryAttempt > 0)
    end = writeNumber(bytes, copy(bytes, end, names.retryAttempt), r.retryAttempt);
  if (r.error !== undefined) end = writeText(bytes, end, names.error, r.error, true);
  if (r.reason !== undefined && r.reason !== "Upstream") end = writeText(bytes, end, names.reason, r.reason, json);
  if (r.shadow !== undefined) {
    end = copy(bytes, end, names.shadow);
    end += bytes.write(json ? safeJson(r.shadow) : quote(shadowText(r.shadow)), end);
  }
  end = writeNumber(bytes, copy(bytes, end, names.bytesReceived), r.bytesReceived);
  return copy(bytes, end, names.bytesSent);
}

/** Name and value; `quoted` even if the value has no characters that need it. Most values need no escapes: see `quote`. */
function writeText(bytes: Buffer, at: number, name: Uint8Array, value: string, quoted: boolean): number {
  const start = copy(bytes, at, name);
  const { length } = value;
  let end = start;
  if (quoted) bytes[end++] = QUOTE;
  const least = quoted ? SPACE : SPACE + 1;
  for (let i = 0; i < length; i++) {
    const code = value.charCodeAt(i);
    if (code < least || code > TILDE || code === QUOTE || code === BACKSLASH)
      return start + bytes.write(quote(value), start);
    bytes[end++] = code;
  }
  if (quoted) bytes[end++] = QUOTE;
  else if (length === 0) return start + bytes.write(quote(value), start);
  return end;
}

/** As `String` writes it. */
function writeNumber(bytes: Buffer, at: number, value: number): number {
  if (!(value >= 0 && value <= MAX_INT32 && Number.isInteger(value)))
    return at + bytes.write(String(value), at, "latin1");
  let rest = value | 0;
  let end = at + 1;
  for (let bound = 10; bound <= rest && bound < 1e10; bound *= 10) end++;
  for (let i = end - 1; i >= at; i--) {
    const tenth = (rest / 10) | 0;
    bytes[i] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
  return end;
}

/** Milliseconds with up to three decimals, without zeros at the end. */
function writeMilliseconds(bytes: Buffer, at: number, durationMs: number): number {
  const microseconds = Math.round(durationMs * 1000);
  if (!(microseconds >= 0 && microseconds <= MAX_INT32))
    return at + bytes.write(String(microseconds / 1000), at, "latin1");
  const whole = (microseconds / 1000) | 0;
  let end = writeNumber(bytes, at, whole);
  let rest = microseconds - whole * 1000;
  if (rest === 0) return end;
  bytes[end++] = POINT;
  for (let unit = 100; rest > 0; unit = (unit / 10) | 0) {
    const digit = (rest / unit) | 0;
    bytes[end++] = ZERO + digit;
    rest -= digit * unit;
  }
  return end;
}
