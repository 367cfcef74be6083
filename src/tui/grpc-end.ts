import { type Fields, fields } from "./fields.ts";

/** Names of the statuses of gRPC, by their number. */
const NAMES =
  "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED".split(
    " ",
  );

/** How the gRPC call of a `requestFinished` ended: `grpc-status 14 (UNAVAILABLE)`. Undefined if the request was not a gRPC call. */
export function grpcEndOf(message: Fields): { readonly text: string; readonly failed: boolean } | undefined {
  if (message.grpc === undefined) return undefined;
  const { status } = fields(message.grpc);
  // Clients treat a call without a status as failed.
  if (typeof status !== "number") return { text: "no grpc-status", failed: true };
  const name = NAMES[status];
  return { text: `grpc-status ${status}${name === undefined ? "" : ` (${name})`}`, failed: status !== 0 };
}
