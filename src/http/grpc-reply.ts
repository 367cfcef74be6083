import { ERRORS, type ErrorCode } from "../base/errors.ts";
import { type Fields, getHeader, type HeaderList } from "./message/message.ts";

/** gRPC status for an HTTP status that the gateway itself returns (docs/grpc.md); for others it is 2, unknown. */
const GRPC_STATUS: Readonly<Record<number, number>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  407: 16,
  429: 14,
  502: 14,
  503: 14,
  504: 14,
};

/** gRPC status of errors where it does not follow from the HTTP status: UNAVAILABLE, DEADLINE_EXCEEDED and RESOURCE_EXHAUSTED. */
const OF_ERRORS: ReadonlyMap<ErrorCode, number> = new Map([
  ["TG_NO_BACKENDS", 14],
  ["TG_DEADLINE_EXCEEDED", 4],
  ["TG_CLIENT_TIMEOUT", 4],
  ["TG_BODY_TOO_LARGE", 8],
  ["TG_RESPONSE_TOO_LARGE", 8],
  ["TG_HEAD_TOO_LARGE", 8],
]);

const GRPC_LENGTH = "application/grpc".length;

/** Whether a message is gRPC by its Content-Type. */
export function isGrpc(headers: Fields): boolean {
  const contentType = getHeader(headers, "content-type") ?? "";
  if (!contentType.startsWith("application/grpc")) return false;
  // A format such as `+proto` may follow, and parameters, which servers and other proxies accept too; gRPC-Web is something else.
  return contentType.length === GRPC_LENGTH || "+;".includes(contentType.charAt(GRPC_LENGTH));
}

export function grpcStatusOf(httpStatus: number): number {
  return GRPC_STATUS[httpStatus] ?? 2;
}

export function grpcStatusOfError(code: ErrorCode): number {
  return OF_ERRORS.get(code) ?? grpcStatusOf(ERRORS[code].status);
}

/** The status of a gRPC call in the head or the trailers of its response; 2, unknown, if it is not a number. */
export function grpcStatusIn(fields: HeaderList): number | undefined {
  const text = getHeader(fields, "grpc-status");
  if (text === undefined) return undefined;
  if (text === "0") return 0;
  return /^\d{1,9}$/.test(text) ? Number(text) : 2;
}

/**
 * Header fields of a response that reports an error to a gRPC client: status 200 without a body (Trailers-Only). Some clients
 * reject a format, such as `+json`, other than that of the `request`.
 */
export function grpcError(request: Fields, status: number, message: string): HeaderList {
  return ["content-type", getHeader(request, "content-type") ?? "application/grpc", ...grpcTrailers(status, message)];
}

/** The fields that end a call. */
export function grpcTrailers(status: number, message: string): HeaderList {
  const encoded = message.toWellFormed().replace(/[\0-\x20%\x7f-\u{10ffff}]/gu, (char) => encodeURIComponent(char));
  return ["grpc-status", String(status), "grpc-message", encoded];
}
