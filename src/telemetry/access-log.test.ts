import assert from "node:assert/strict";
import { test } from "node:test";
import { type AccessRecord, formatAccessLog, recordFields } from "./access-log.ts";

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
  path: "/a?x=1",
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

test("a text line holds the fields in order, quoted where needed", () => {
  assert.equal(
    formatAccessLog(full, "text"),
    "2026-02-03T04:05:06.007Z\tinfo\trequest request.id=r1 gateway=default/default listener=listener0 " +
      "route_rule=rule route=default/shop endpoint=10.0.0.7:8080 src.addr=127.0.0.1:5555 " +
      "http.method=GET http.host=shop.example http.path=/a?x=1 " +
      "http.version=HTTP/1.1 http.status=503 grpc.status=14 trace.id=4bf9 span.id=00f0 " +
      'jwt.sub="Jane Doe" protocol=http retry.attempt=2 error="upstream call failed: said \\"no\\"" ' +
      "reason=UpstreamFailure bytes.received=5 bytes.sent=70 duration=12ms",
  );
});

test("a JSON line holds the same fields in the same order", () => {
  const names = formatAccessLog(full, "text")
    .replace(/^.*?request /, "")
    .matchAll(/(?:^| )([a-z_.]+)=/g);
  const parsed = JSON.parse(formatAccessLog(full, "json"));
  assert.deepEqual(Object.keys(parsed), ["level", "time", "scope", ...Array.from(names, (match) => match[1])]);
  assert.equal(parsed["http.status"], 503);
  assert.equal(parsed.duration, 12.346);
  assert.equal(parsed.error, full.error);
});

test("a JSON line says where its own request went, whatever the line before says", () => {
  formatAccessLog(full, "json");
  for (const name of ["gateway", "listener", "routeRule", "route", "endpoint"] as const) {
    const parsed = JSON.parse(formatAccessLog({ ...full, [name]: 'an "other"' }, "json"));
    const fields = [parsed.gateway, parsed.listener, parsed.route_rule, parsed.route, parsed.endpoint];
    assert.deepEqual(fields.filter((value) => value === 'an "other"').length, 1, name);
    assert.equal("route" in JSON.parse(formatAccessLog({ ...full, route: undefined }, "json")), false);
    assert.equal(formatAccessLog(full, "json"), formatAccessLog({ ...full }, "json"));
  }
  const later = JSON.parse(formatAccessLog({ ...full, time: time + 1 }, "json"));
  assert.equal(later.time, "2026-02-03T04:05:06.008Z");
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
    const { level: _l, time: _t, scope: _s, ...fields } = JSON.parse(formatAccessLog(record, "json"));
    assert.equal(JSON.stringify(recordFields(record)), JSON.stringify(fields));
  }
});

test("absent fields are left out, the server name stands in for a missing host", () => {
  const record: AccessRecord = {
    time,
    protocol: "tls",
    sni: "db.example",
    reason: "Upstream",
    ...NOTHING,
    durationMs: 0,
  };
  assert.equal(
    formatAccessLog(record, "text"),
    "2026-02-03T04:05:06.007Z\tinfo\trequest tls.sni=db.example protocol=tls bytes.received=0 bytes.sent=0 duration=0ms",
  );
  assert.deepEqual(Object.keys(JSON.parse(formatAccessLog(record, "json"))), [
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
    path: "/\r\n2026 \u009b error=x",
    host: 'a" status=200',
    ...NOTHING,
    durationMs: 1,
  };
  const line = formatAccessLog(record, "text");
  assert.doesNotMatch(line.replaceAll("\t", ""), /\p{Cc}/u);
  assert.match(line, /http\.host="a\\" status=200" http\.path="\/\\r\\n2026 \\u009b error=x"/);
  assert.doesNotMatch(formatAccessLog(record, "json"), /\p{Cc}/u);
});
