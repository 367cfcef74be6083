import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type Attributes, writeAttributes } from "./entries.ts";

/** Kinds of telemetry; each has its own service, path and messages, of the same shape. */
export type Signal = "traces" | "logs";

/** Encoded spans or log records, as fields of a scope message: chunks can be concatenated. */
export interface Chunk {
  readonly count: number;
  readonly bytes: Uint8Array;
}

/** Number of the field of `ScopeSpans` and of `ScopeLogs` that holds an entry. */
const ENTRY = 2;

/** Puts entries from `encodeSpan` or `encodeLogRecord` into one chunk. */
export function encodeChunk(entries: readonly Uint8Array[]): Chunk {
  const writer = new BinaryWriter();
  for (const entry of entries) writer.tag(ENTRY, WireType.LengthDelimited).bytes(entry);
  return { count: entries.length, bytes: writer.finish() };
}

/** The instrumentation scope of all exports. */
interface Scope {
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

/** Accepts entries for export; never waits and never throws. */
export interface EntrySink {
  /** `entry`: from `encodeSpan` or `encodeLogRecord`; `exporter`: from `exporterKey`. */
  add(exporter: string, entry: Uint8Array): void;
}

/** Identifies an exporter across threads. */
export function exporterKey(signal: Signal, collector: object): string {
  return `${signal} ${JSON.stringify(collector)}`;
}
