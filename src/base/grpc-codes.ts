/** Status codes of failed gRPC calls, by the names that clients and service configurations use ("Status codes and their use in gRPC"). */
export const GRPC_CODES = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

type GrpcCode = keyof typeof GRPC_CODES;

export const GRPC_CODE_NAMES = Object.keys(GRPC_CODES) as readonly GrpcCode[];

/** Statuses that say that a server has failed; the others say what was wrong with the call. */
export const SERVER_FAILURES: ReadonlySet<number> = new Set([
  GRPC_CODES.UNKNOWN,
  GRPC_CODES.DEADLINE_EXCEEDED,
  GRPC_CODES.UNIMPLEMENTED,
  GRPC_CODES.INTERNAL,
  GRPC_CODES.UNAVAILABLE,
  GRPC_CODES.DATA_LOSS,
]);

/** `OK`, a name of `GRPC_CODES`, or undefined for a number that gRPC has no name for. */
export function grpcStatusName(status: number): string | undefined {
  return status === 0 ? "OK" : GRPC_CODE_NAMES.find((name) => GRPC_CODES[name] === status);
}

/** How a call ended, such as `grpc-status 14 (UNAVAILABLE)`. `status` undefined: it ended without one, which clients treat as a failure. */
export function grpcEndText(status: number | undefined): string {
  if (status === undefined) return "no grpc-status";
  const name = grpcStatusName(status);
  return `grpc-status ${status}${name === undefined ? "" : ` (${name})`}`;
}
