/**
 * Encodes spans and log records as OTLP, field by field. Workers do this for every sampled request, so it does without the
 * generated messages: the protobuf library with them takes 2.4 MB of heap in each worker, and a span with twelve attributes 10 µs instead
 * of 7. `messages.ts` wraps the results. Tests compare the bytes with the published fields.
 */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** One finished operation (opentelemetry/proto/trace/v1/trace.proto, `Span`). Ids are hexadecimal, times milliseconds. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parent?: { readonly spanId: string; readonly remote: boolean } | undefined;
  /** `tracestate` of the trace (W3C Trace Context, section 3.3), forwarded unchanged. */
  readonly traceState?: string | undefined;
  readonly name: string;
  readonly kind: "server" | "client";
  /** Since the epoch. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Attributes;
  /** Why the operation failed; sets the status ERROR. Empty: its attributes say why. */
  readonly error?: string | undefined;
}

/** One event (opentelemetry/proto/logs/v1/logs.proto, `LogRecord`), at level info. */
interface LogRecord {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly body: string;
  readonly attributes: Attributes;
  /** The trace that it belongs to. */
  readonly traceId?: string | undefined;
  /** The span, if the trace is sampled. */
  readonly spanId?: string | undefined;
}

const KINDS = { server: 2, client: 3 } as const;
const STATUS_ERROR = 2;
/** W3C trace flags, in the low byte of `flags`. */
const SAMPLED = 0x01;
/** `SpanFlags`: whether the parent is remote is known, and whether it is. */
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;
const SEVERITY_INFO = 9;

/** Encodes a span. Text that is not well-formed Unicode is repaired, because protobuf strings must be UTF-8. */
export function encodeSpan(span: Span): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.LengthDelimited).bytes(Buffer.from(span.traceId, "hex"));
  writer.tag(2, WireType.LengthDelimited).bytes(Buffer.from(span.spanId, "hex"));
  if (span.traceState !== undefined) writer.tag(3, WireType.LengthDelimited).string(span.traceState);
  if (span.parent !== undefined) writer.tag(4, WireType.LengthDelimited).bytes(Buffer.from(span.parent.spanId, "hex"));
  writer.tag(5, WireType.LengthDelimited).string(span.name.toWellFormed());
  writer.tag(6, WireType.Varint).int32(KINDS[span.kind]);
  writer.tag(7, WireType.Bit64).fixed64(nanoseconds(span.start));
  writer.tag(8, WireType.Bit64).fixed64(nanoseconds(span.end));
  writeAttributes(writer, 9, span.attributes);
  if (span.error !== undefined) {
    writer.tag(15, WireType.LengthDelimited).fork();
    if (span.error !== "") writer.tag(2, WireType.LengthDelimited).string(span.error.toWellFormed());
    writer.tag(3, WireType.Varint).int32(STATUS_ERROR);
    writer.join();
  }
  const remote = span.parent === undefined ? 0 : HAS_IS_REMOTE | (span.parent.remote ? IS_REMOTE : 0);
  writer.tag(16, WireType.Bit32).fixed32(SAMPLED | remote);
  return writer.finish();
}

/** Encodes a log record; `observed_time` is the event's own time. */
export function encodeLogRecord(record: LogRecord): Uint8Array {
  const writer = new BinaryWriter();
  const time = nanoseconds(record.time);
  writer.tag(1, WireType.Bit64).fixed64(time);
  writer.tag(2, WireType.Varint).int32(SEVERITY_INFO);
  writer.tag(3, WireType.LengthDelimited).string("INFO");
  writeAnyValue(writer, 5, record.body);
  writeAttributes(writer, 6, record.attributes);
  const { traceId, spanId } = record;
  if (spanId !== undefined) writer.tag(8, WireType.Bit32).fixed32(SAMPLED);
  if (traceId !== undefined) writer.tag(9, WireType.LengthDelimited).bytes(Buffer.from(traceId, "hex"));
  if (spanId !== undefined) writer.tag(10, WireType.LengthDelimited).bytes(Buffer.from(spanId, "hex"));
  writer.tag(11, WireType.Bit64).fixed64(time);
  return writer.finish();
}

/** Rounded to microseconds, the precision of a double for times since the epoch. */
function nanoseconds(ms: number): bigint {
  return BigInt(Math.round(ms * 1000)) * 1000n;
}

/** JSON values; `undefined` is omitted. */
export type Attributes = Readonly<Record<string, unknown>>;

/** Maximum characters of a string: clients must not be able to make exports arbitrarily large. */
const MAX_TEXT = 8192;

/** Fields of `AnyValue` (opentelemetry/proto/common/v1/common.proto). */
const STRING = 1;
const BOOL = 2;
const INT = 3;
const DOUBLE = 4;
const ARRAY = 5;
const MAP = 6;

/** Writes each attribute as a `KeyValue` in field `number`. */
export function writeAttributes(writer: BinaryWriter, number: number, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    writer.tag(number, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(cut(name));
    writeAnyValue(writer, 2, value);
    writer.join();
  }
}

/** Writes an `AnyValue` in field `number`. null is an empty `AnyValue`; integers beyond 2^53 are doubles. */
function writeAnyValue(writer: BinaryWriter, number: number, value: unknown): void {
  writer.tag(number, WireType.LengthDelimited).fork();
  if (typeof value === "string") writer.tag(STRING, WireType.LengthDelimited).string(cut(value));
  else if (typeof value === "boolean") writer.tag(BOOL, WireType.Varint).bool(value);
  else if (typeof value === "number") {
    if (Number.isSafeInteger(value)) writer.tag(INT, WireType.Varint).int64(value);
    else writer.tag(DOUBLE, WireType.Bit64).double(value);
  } else if (Array.isArray(value)) {
    writer.tag(ARRAY, WireType.LengthDelimited).fork();
    for (const each of value) writeAnyValue(writer, 1, each);
    writer.join();
  } else if (typeof value === "object" && value !== null) {
    writer.tag(MAP, WireType.LengthDelimited).fork();
    writeAttributes(writer, 1, value as Attributes);
    writer.join();
  }
  writer.join();
}

function cut(text: string): string {
  // Cutting may split a surrogate pair, which is not well-formed.
  return text.length <= MAX_TEXT ? text.toWellFormed() : text.slice(0, MAX_TEXT).toWellFormed();
}
