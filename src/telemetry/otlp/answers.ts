/**
 * Decodes the responses of collectors. Most are empty, and the messages with the protobuf library take 2.4 MB of heap, so this
 * module is loaded by `import()` only, for the first response that is not.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { ExportLogsServiceResponseSchema } from "../../gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { ExportTraceServiceResponseSchema } from "../../gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.ts";
import type { Signal } from "./messages.ts";

/** What a collector rejected of a request that it accepted otherwise (OTLP specification, "Partial Success"). */
interface PartialSuccess {
  /** Spans or log records. */
  readonly rejected: number;
  /** May be present without rejected entries, as a warning. */
  readonly message: string;
}

const ALL_TAKEN: PartialSuccess = { rejected: 0, message: "" };

/** Decodes an `Export…ServiceResponse`. Other bytes count as full success: some collectors respond with plain text. */
export function decodeExportResponse(signal: Signal, bytes: Uint8Array): PartialSuccess {
  try {
    const part =
      signal === "traces"
        ? fromBinary(ExportTraceServiceResponseSchema, bytes).partialSuccess
        : fromBinary(ExportLogsServiceResponseSchema, bytes).partialSuccess;
    if (part === undefined) return ALL_TAKEN;
    const rejected = "rejectedSpans" in part ? part.rejectedSpans : part.rejectedLogRecords;
    return { rejected: Number(rejected), message: part.errorMessage };
  } catch {
    return ALL_TAKEN;
  }
}

/**
 * The delay in milliseconds that a collector requests before a retry, from `RetryInfo` in the `google.rpc.Status` of its response;
 * undefined without one (OTLP specification, "OTLP/gRPC Throttling").
 */
export function decodeRetryDelay(status: Uint8Array): number | undefined {
  try {
    for (const detail of fromBinary(StatusSchema, status).details) {
      const info = anyUnpack(detail, RetryInfoSchema);
      if (info !== undefined) return durationMs(info.retryDelay);
    }
  } catch {
    // Not a status.
  }
  return undefined;
}

function durationMs(delay: { readonly seconds: bigint; readonly nanos: number } | undefined): number {
  return delay === undefined ? 0 : Number(delay.seconds) * 1000 + delay.nanos / 1e6;
}
