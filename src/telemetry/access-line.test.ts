import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/helpers/property.ts";
import { type LogFormat, quote, quoteIfNeeded, safeJson } from "../base/log.ts";
import type { RedactedTarget } from "../base/redaction.ts";
import { mostBytes, writeAccessLine } from "./access-line.ts";
import { type AccessRecord, recordFields } from "./access-record.ts";

const time = Date.UTC(2026, 1, 3, 4, 5, 6, 7);

const NOTHING = { bytesReceived: 0, bytesSent: 0 };

const full: AccessRecord = {
  time,
  requestId: "r1",
  gateway: "default/default",
  listener: "listener0",
  routeRule: "rule",
  route: "default/shop",
  endpoint: "10.0.0.7:8080",
  source: "127.0.0.1:5555",
  method: "GET",
  host: "shop.example",
  path: "/a?x=1" as RedactedTarget,
  version: "HTTP/1.1",
  status: 503,
  grpcStatus: 14,
  sni: "hidden.example",
  traceId: "4bf9",
  spanId: "00f0",
  jwtSubject: "Jane Doe",
  protocol: "http",
  retryAttempt: 2,
  error: 'upstream call failed: said "no"',
  reason: "UpstreamFailure",
  bytesReceived: 5,
  bytesSent: 70,
  durationMs: 12.3456,
};

/** The line without its line break; written between other bytes, which stay as they are. */
function lineOf(record: AccessRecord, format: LogFormat): string {
  const most = mostBytes(record);
  const bytes = Buffer.alloc(most + 6, "#");
  const end = writeAccessLine(record, format, bytes, 3);
  assert.ok(end <= 3 + most, `${end - 3} bytes, ${most} were promised`);
  assert.match(bytes.toString("latin1", end), /^#+$/);
  const line = bytes.toString("utf8", 0, end);
  assert.match(line, /^###[^\n]+\n$/);
  return line.slice(3, -1);
}

test("a text line holds the fields in order, quoted where needed", () => {
  assert.equal(
    lineOf(full, "text"),
    "2026-02-03T04:05:06.007Z\tinfo\trequest request.id=r1 gateway=default/default listener=listener0 " +
      "route_rule=rule route=default/shop endpoint=10.0.0.7:8080 src.addr=127.0.0.1:5555 " +
      "http.method=GET http.host=shop.example http.path=/a?x=1 " +
      "http.version=HTTP/1.1 http.status=503 grpc.status=14 trace.id=4bf9 span.id=00f0 " +
      'jwt.sub="Jane Doe" protocol=http retry.attempt=2 error="upstream call failed: said \\"no\\"" ' +
      "reason=UpstreamFailure bytes.received=5 bytes.sent=70 duration=12ms",
  );
});

test("a JSON line holds the same fields in the same order", () => {
  const names = lineOf(full, "text")
    .replace(/^.*?request /, "")
    .matchAll(/(?:^| )([a-z_.]+)=/g);
  const parsed = JSON.parse(lineOf(full, "json"));
  assert.deepEqual(Object.keys(parsed), ["level", "time", "scope", ...Array.from(names, (match) => match[1])]);
  assert.equal(parsed["http.status"], 503);
  assert.equal(parsed.duration, 12.346);
  assert.equal(parsed.error, full.error);
});

test("a JSON line says where its own request went, whatever the line before says", () => {
  lineOf(full, "json");
  for (const name of ["gateway", "listener", "routeRule", "route", "endpoint"] as const) {
    const parsed = JSON.parse(lineOf({ ...full, [name]: 'an "other"' }, "json"));
    const fields = [parsed.gateway, parsed.listener, parsed.route_rule, parsed.route, parsed.endpoint];
    assert.deepEqual(fields.filter((value) => value === 'an "other"').length, 1, name);
    assert.equal("route" in JSON.parse(lineOf({ ...full, route: undefined }, "json")), false);
    assert.equal(lineOf(full, "json"), lineOf({ ...full }, "json"));
  }
  const later = JSON.parse(lineOf({ ...full, time: time + 1 }, "json"));
  assert.equal(later.time, "2026-02-03T04:05:06.008Z");
});

test("a line says how its own request ended, whatever the line before says", () => {
  const usual: AccessRecord = {
    time,
    host: "shop.example",
    version: "HTTP/1.1",
    status: 200,
    protocol: "http",
    reason: "Upstream",
    ...NOTHING,
    durationMs: 1,
  };
  const others: readonly Partial<AccessRecord>[] = [
    { version: "HTTP/2.0" },
    { version: undefined },
    { status: 404 },
    { status: undefined },
    { grpcStatus: 0 },
    { host: undefined, sni: "hidden.example" },
    { sni: "hidden.example" },
    { traceId: "4bf9" },
    { spanId: "00f0" },
    { jwtSubject: "Jane Doe" },
    { protocol: "tcp" },
    { retryAttempt: 1 },
    { error: "connection refused" },
    { reason: "Timeout" },
    { bytesReceived: 5 },
    { bytesSent: 70 },
  ];
  for (const format of ["text", "json"] as const) {
    for (const other of others) {
      for (const record of [usual, { ...usual, ...other }, usual])
        assert.equal(lineOf(record, format), reference(record, format), JSON.stringify(other));
    }
  }
});

test("the fields as data are those of the line, in the same order", () => {
  const few: AccessRecord = {
    time,
    protocol: "tls",
    sni: "db",
    retryAttempt: 0,
    reason: "Upstream",
    ...NOTHING,
    durationMs: 0.6,
  };
  for (const record of [full, few]) {
    const { level: _l, time: _t, scope: _s, ...fields } = JSON.parse(lineOf(record, "json"));
    assert.equal(JSON.stringify(recordFields(record)), JSON.stringify(fields));
  }
});

test("absent fields are omitted, the server name replaces a missing host", () => {
  const record: AccessRecord = {
    time,
    protocol: "tls",
    sni: "db.example",
    reason: "Upstream",
    ...NOTHING,
    durationMs: 0,
  };
  assert.equal(
    lineOf(record, "text"),
    "2026-02-03T04:05:06.007Z\tinfo\trequest tls.sni=db.example protocol=tls bytes.received=0 bytes.sent=0 duration=0ms",
  );
  assert.deepEqual(Object.keys(JSON.parse(lineOf(record, "json"))), [
    "level",
    "time",
    "scope",
    "tls.sni",
    "protocol",
    "bytes.received",
    "bytes.sent",
    "duration",
  ]);
});

test("a client cannot forge a line or a field", () => {
  const record: AccessRecord = {
    time,
    protocol: "http",
    path: "/\r\n2026 \u009b error=x" as RedactedTarget,
    host: 'a" status=200',
    ...NOTHING,
    durationMs: 1,
  };
  const line = lineOf(record, "text");
  assert.doesNotMatch(line.replaceAll("\t", ""), /\p{Cc}/u);
  assert.match(line, /http\.host="a\\" status=200" http\.path="\/\\r\\n2026 \\u009b error=x"/);
  assert.doesNotMatch(lineOf(record, "json"), /\p{Cc}/u);
});

/** The line as a plain program writes it. */
function reference(record: AccessRecord, format: LogFormat): string {
  const json = format === "json";
  const { duration: _, ...fields } = recordFields(record);
  const time = new Date(record.time).toISOString();
  let line = json ? `{"level":"info","time":"${time}","scope":"request"` : `${time}\tinfo\trequest`;
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    if (Array.isArray(value)) {
      line += json ? `,"${name}":${safeJson(value)}` : ` ${name}=${quote(value.join(" | "))}`;
      continue;
    }
    const text = json || name === "error" ? quote : quoteIfNeeded;
    line += `${json ? `,"${name}":` : ` ${name}=`}${typeof value === "string" ? text(value) : value}`;
  }
  return json
    ? `${line},"duration":${Math.round(record.durationMs * 1000) / 1000}}`
    : `${line} duration=${Math.round(record.durationMs)}ms`;
}

const text = fc.oneof(
  fc.string({ unit: "grapheme-ascii" }),
  fc.string({ unit: "binary" }),
  fc
    .array(fc.constantFrom("a", " ", '"', "\\", "\x7f", "\x9f", "\n", "é", "\u2028", "\ud800"), { maxLength: 9 })
    .map((all) => all.join("")),
);
const some = fc.option(text, { nil: undefined });
const number = fc.oneof(fc.nat({ max: 1200 }), fc.nat(), fc.maxSafeNat());
const record: fc.Arbitrary<AccessRecord> = fc.record({
  time: fc.nat({ max: 4e12 }),
  requestId: some,
  gateway: some,
  listener: some,
  routeRule: some,
  route: some,
  endpoint: some,
  source: some,
  method: some,
  host: some,
  path: some as fc.Arbitrary<RedactedTarget | undefined>,
  version: some,
  status: fc.option(number, { nil: undefined }),
  grpcStatus: fc.option(number, { nil: undefined }),
  sni: some,
  traceId: some,
  spanId: some,
  jwtSubject: some,
  protocol: text,
  retryAttempt: fc.option(fc.nat({ max: 12 }), { nil: undefined }),
  error: some,
  reason: fc.oneof(some, fc.constant("Upstream")),
  shadow: fc.option(fc.array(text, { minLength: 1, maxLength: 3 }), { nil: undefined }),
  bytesReceived: number,
  bytesSent: number,
  durationMs: fc.oneof(
    fc.double({ min: 0, max: 5000, noNaN: true }),
    fc.double({ min: 0, max: 1e10, noNaN: true }),
    fc.nat({ max: 3_000_000 }).map((us) => us / 1000),
  ),
});

test("lines equal those of a simple implementation, for any values", () => {
  fc.assert(
    fc.property(record, fc.constantFrom("text" as const, "json" as const), (made, format) => {
      assert.equal(lineOf(made, format), reference(made, format));
    }),
    { numRuns: 2000 },
  );
});
