import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type Attributes, writeAttributes } from "./attributes.ts";

/** What is exported: each has a service, a path and messages of its own, of the same shape. */
export type Signal = "traces" | "logs";

/** Spans or log records as the fields of a scope that hold them: such bytes can be put together. */
export interface Chunk {
  readonly count: number;
  readonly bytes: Uint8Array;
}

/** Number of the field of `ScopeSpans` and of `ScopeLogs` that holds an entry. */
const ENTRY = 2;

/** Entries that `encodeSpan` or `encodeLogRecord` has made. */
export function encodeChunk(entries: readonly Uint8Array[]): Chunk {
  const writer = new BinaryWriter();
  for (const entry of entries) writer.tag(ENTRY, WireType.LengthDelimited).bytes(entry);
  return { count: entries.length, bytes: writer.finish() };
}

/** Who has made what is exported. */
export interface Scope {
  readonly name: string;
  readonly version: string;
}

/** Methods of gRPC by signal (opentelemetry/proto/collector). */
export const EXPORT_METHODS: Readonly<Record<Signal, string>> = {
  traces: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
  logs: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
};

/**
 * `ExportTraceServiceRequest` or `ExportLogsServiceRequest`, whose fields have the same numbers, with one resource and one
 * scope.
 */
export function encodeExportRequest(resource: Attributes, scope: Scope, chunks: readonly Chunk[]): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.LengthDelimited).fork();
  writer.tag(1, WireType.LengthDelimited).fork();
  writeAttributes(writer, 1, resource);
  writer.join();
  writer.tag(2, WireType.LengthDelimited).fork();
  writer.tag(1, WireType.LengthDelimited).fork();
  writer.tag(1, WireType.LengthDelimited).string(scope.name);
  writer.tag(2, WireType.LengthDelimited).string(scope.version);
  writer.join();
  for (const { bytes } of chunks) writer.raw(bytes);
  writer.join();
  writer.join();
  return writer.finish();
}

/** What a collector has not taken of a request that it otherwise took. */
export interface PartialSuccess {
  readonly rejected: number;
  readonly message: string;
}

/** Of an `Export…ServiceResponse`. Bytes that are none, as some collectors answer in text, say that all was taken. */
export function decodeExportResponse(bytes: Uint8Array): PartialSuccess {
  const found = { rejected: 0, message: "" };
  try {
    eachField(new BinaryReader(bytes), bytes.length, (reader, number) => {
      if (number !== 1) return false;
      eachField(reader, reader.uint32(), (inner, field) => {
        if (field === 1) found.rejected = Number(inner.int64());
        else if (field === 2) found.message = inner.string();
        return field === 1 || field === 2;
      });
      return true;
    });
  } catch {
    return { rejected: 0, message: "" };
  }
  return found;
}

const RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo";

/**
 * Milliseconds after which a service wants to be asked again, from the `google.rpc.Status` of its answer; undefined when that
 * has no `RetryInfo` (OTLP specification, "OTLP/gRPC Throttling").
 */
export function decodeRetryDelay(status: Uint8Array): number | undefined {
  let delay: number | undefined;
  try {
    eachField(new BinaryReader(status), status.length, (reader, number) => {
      if (number !== 3) return false;
      let type = "";
      let value: Uint8Array = new Uint8Array(0);
      eachField(reader, reader.uint32(), (inner, field) => {
        if (field === 1) type = inner.string();
        else if (field === 2) value = inner.bytes();
        return field === 1 || field === 2;
      });
      if (type === RETRY_INFO) delay = retryDelayOf(value);
      return true;
    });
  } catch {
    return undefined;
  }
  return delay;
}

/** Of a `google.rpc.RetryInfo`: its `google.protobuf.Duration`. */
function retryDelayOf(bytes: Uint8Array): number {
  let ms = 0;
  eachField(new BinaryReader(bytes), bytes.length, (reader, number) => {
    if (number !== 1) return false;
    eachField(reader, reader.uint32(), (inner, field) => {
      if (field === 1) ms += Number(inner.int64()) * 1000;
      else if (field === 2) ms += inner.int32() / 1e6;
      return field === 1 || field === 2;
    });
    return true;
  });
  return ms;
}

/** `take` reads the value of a field, or leaves it and returns false. */
function eachField(
  reader: BinaryReader,
  length: number,
  take: (reader: BinaryReader, number: number) => boolean,
): void {
  const end = reader.pos + length;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (!take(reader, number)) reader.skip(wireType, number);
  }
}
