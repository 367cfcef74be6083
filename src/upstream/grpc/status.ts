/** How gRPC calls end: the status that a service sends, and the one that replaces a missing one. */
import { grpcStatusIn, grpcStatusOf } from "../../http/grpc-reply.ts";
import { errorName } from "../../http/h2/frames.ts";
import { getHeader, type HeaderList } from "../../http/message/message.ts";

/** Codes that the gateway sets or checks (gRPC "Status codes and their use"). */
export const STATUS = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  internal: 13,
  unavailable: 14,
} as const;

/** The end of a call. */
export interface GrpcStatus {
  readonly code: number;
  /** May be empty: most services omit it for OK. */
  readonly message: string;
  /** `google.rpc.Status`, encoded, where the service has sent one: what else it says about a failure. */
  readonly details?: Uint8Array | undefined;
}

/** A gRPC call has ended with a status other than OK; the `cause` of the GatewayError that says so. */
export class GrpcStatusError extends Error {
  readonly code: number;
  /** As in `GrpcStatus`. */
  readonly details: Uint8Array | undefined;
  /** It ended within a message, which might have been decisive. */
  unreadable = false;

  constructor({ code, message, details }: GrpcStatus) {
    super(`gRPC status ${code}: ${message}`);
    this.code = code;
    this.details = details;
  }
}

/** The status in trailers, or in a head without body ("Trailers-Only"); undefined if the fields have no `grpc-status`. */
export function statusIn(fields: HeaderList): GrpcStatus | undefined {
  const code = grpcStatusIn(fields);
  if (code === undefined) return undefined;
  const details = getHeader(fields, "grpc-status-details-bin");
  return {
    code,
    message: percentDecoded(getHeader(fields, "grpc-message") ?? ""),
    // Node.js reads it with and without padding, as receivers have to.
    details: details === undefined ? undefined : Buffer.from(details, "base64"),
  };
}

/**
 * The status for a response that is not gRPC, such as that of a proxy on the way (gRPC "HTTP to gRPC Status Code Mapping"). 200 is
 * not in that mapping: it is UNKNOWN, because success needs a gRPC status.
 */
export function statusOfHttp(httpStatus: number, contentType: string | undefined): GrpcStatus {
  const what = contentType === undefined ? "" : `, ${contentType}`;
  return { code: grpcStatusOf(httpStatus), message: `the response is not gRPC: HTTP status ${httpStatus}${what}` };
}

/** Error codes of HTTP/2 that mean something other than INTERNAL (gRPC over HTTP/2, "Errors"). */
const RESETS: ReadonlyMap<string, number> = new Map([
  ["REFUSED_STREAM", STATUS.unavailable],
  ["CANCEL", STATUS.cancelled],
  ["ENHANCE_YOUR_CALM", STATUS.resourceExhausted],
  ["INADEQUATE_SECURITY", STATUS.permissionDenied],
]);

/** The status of a stream that the service has reset with this error code. */
export function codeOfReset(errorCode: number): number {
  return RESETS.get(errorName(errorCode)) ?? STATUS.internal;
}

/** Malformed escapes leave the text as it is: a bad message must not hide the status (gRPC over HTTP/2, "Responses"). */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
