import assert from "node:assert/strict";
import { test } from "node:test";
import { attributesOf, type Decoded, decode, listOf } from "../../../test/helpers/otlp/decode.ts";
import { decodeExportResponse, decodeRetryDelay } from "./answers.ts";
import { encodeLogRecord, encodeSpan } from "./entries.ts";
import { encodeChunk, encodeExportRequest } from "./messages.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const TIME = 1_767_225_600_000.25;

test("a span has the published fields", () => {
  const bytes = encodeSpan({
    traceId: TRACE,
    spanId: SPAN,
    parent: { spanId: "b7ad6b7169203331", remote: true },
    traceState: "a=1,b=2",
    name: "GET /ä/*",
    kind: "server",
    start: TIME,
    end: TIME + 1.5,
    attributes: { text: "ü", count: -3, share: 0.5, big: 2 ** 60, yes: true, none: null, absent: undefined },
    error: "it broke",
  });
  const { attributes, ...span } = decode("opentelemetry.proto.trace.v1.Span", bytes);
  assert.deepEqual(span, {
    trace_id: TRACE,
    span_id: SPAN,
    parent_span_id: "b7ad6b7169203331",
    trace_state: "a=1,b=2",
    name: "GET /ä/*",
    kind: 2,
    start_time_unix_nano: 1_767_225_600_000_250_000n,
    end_time_unix_nano: 1_767_225_600_001_750_000n,
    status: { message: "it broke", code: 2 },
    flags: 0x301,
  });
  assert.deepEqual(attributesOf(attributes), {
    text: "ü",
    count: -3,
    share: 0.5,
    big: 2 ** 60,
    yes: true,
    none: null,
  });
});

test("a span of the gateway's own call: a local parent and no error", () => {
  const span = decode(
    "opentelemetry.proto.trace.v1.Span",
    encodeSpan({
      traceId: TRACE,
      spanId: SPAN,
      parent: { spanId: SPAN, remote: false },
      name: "ExtAuthz",
      kind: "client",
      start: TIME,
      end: TIME,
      attributes: {},
    }),
  );
  assert.deepEqual([span.kind, span.flags, span.status, span.trace_state], [3, 0x101, undefined, undefined]);
});

test("lists and maps nest; long text is truncated, and half characters are replaced", () => {
  const attributes = {
    list: ["a", [1], { b: null }],
    map: { deep: { er: 1.5 } },
    long: "x".repeat(10_000),
    half: "\ud800",
  };
  const record = decode(
    "opentelemetry.proto.logs.v1.LogRecord",
    encodeLogRecord({ time: TIME, body: "GET /", attributes }),
  );
  assert.deepEqual(attributesOf(record.attributes), { ...attributes, long: "x".repeat(8192), half: "\ufffd" });
  assert.deepEqual([record.severity_number, record.severity_text, record.body], [9, "INFO", { string_value: "GET /" }]);
  assert.equal(record.time_unix_nano, record.observed_time_unix_nano);
  assert.equal("trace_id" in record, false);
});

test("a log record names its span", () => {
  const record = decode(
    "opentelemetry.proto.logs.v1.LogRecord",
    encodeLogRecord({ time: TIME, body: "", attributes: {}, traceId: TRACE, spanId: SPAN }),
  );
  assert.deepEqual([record.trace_id, record.span_id, record.flags], [TRACE, SPAN, 1]);
});

test("chunks of several threads become one request", () => {
  const entry = (name: string): Uint8Array =>
    encodeSpan({ traceId: TRACE, spanId: SPAN, name, kind: "client", start: 0, end: 0, attributes: {} });
  const chunks = [encodeChunk([entry("a"), entry("b")]), encodeChunk([entry("c")])];
  assert.deepEqual(
    chunks.map(({ count }) => count),
    [2, 1],
  );
  const bytes = encodeExportRequest({ "service.name": "shop" }, { name: "tracegate", version: "1" }, chunks);
  const { resource_spans } = decode("opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest", bytes);
  const [{ resource, scope_spans } = {}] = listOf(resource_spans);
  assert.deepEqual(attributesOf((resource as Decoded).attributes), { "service.name": "shop" });
  const [{ scope, spans } = {}] = listOf(scope_spans);
  assert.deepEqual(scope, { name: "tracegate", version: "1" });
  assert.deepEqual(
    listOf(spans).map(({ name }) => name),
    ["a", "b", "c"],
  );
});

test("entries that a collector rejected, and its delay before a retry", () => {
  // partial_success { rejected_spans: 3, error_message: "no" }, after an unknown field.
  const answer = Buffer.from([0x7a, 1, 0, 0x0a, 6, 0x08, 3, 0x12, 2, 0x6e, 0x6f]);
  assert.deepEqual(decodeExportResponse("traces", answer), { rejected: 3, message: "no" });
  assert.deepEqual(decodeExportResponse("traces", new Uint8Array(0)), { rejected: 0, message: "" });
  assert.deepEqual(decodeExportResponse("traces", Buffer.from("<html>")), { rejected: 0, message: "" });

  const type = Buffer.from("type.googleapis.com/google.rpc.RetryInfo");
  // RetryInfo { retry_delay { seconds: 2, nanos: 5000000 } } as a detail of a Status.
  const info = Buffer.from([0x0a, 7, 0x08, 2, 0x10, 0xc0, 0x96, 0xb1, 2]);
  const detail = Buffer.concat([Buffer.from([0x0a, type.length]), type, Buffer.from([0x12, info.length]), info]);
  const status = Buffer.concat([Buffer.from([0x08, 8, 0x1a, detail.length]), detail]);
  assert.equal(decodeRetryDelay(status), 2005);
  assert.equal(decodeRetryDelay(Buffer.from([0x08, 8])), undefined);
  assert.equal(decodeRetryDelay(Buffer.from([0x1a, 100])), undefined);
});
