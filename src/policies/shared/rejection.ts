import { ERRORS, type ErrorAnswer, type ErrorCode } from "../../base/errors.ts";
import { grpcError, grpcStatusOf, grpcStatusOfError, isGrpc } from "../../http/grpc-reply.ts";
import type { HeaderList, HttpRequest, LocalReply } from "../../http/message/message.ts";
import { copyField } from "../../http/message/message.ts";

/** Bytes of a service's body that become the message of a gRPC status, which is a header field with limited room. */
const MAX_MESSAGE = 1024;

/**
 * A rejection by a service, in the client's protocol: gRPC clients get a status in the header section (a "Trailers-Only" response),
 * unless the service's own response is gRPC. `code` provides status and message where the service does not; `grpcStatus` is the
 * service's own. Always a copy, because several requests may share a cached decision.
 */
export function rejectionReply(
  request: Pick<HttpRequest, "headers">,
  reply: LocalReply,
  code: ErrorCode,
  grpcStatus?: number,
): LocalReply {
  if (!isGrpc(request.headers) || isGrpc(reply.headers)) return { ...reply, headers: [...reply.headers] };
  // gRPC has no redirects, and a 2xx without a message is not a success: both become the status of `code`.
  const status = grpcStatus ?? (reply.status < 400 ? grpcStatusOfError(code) : grpcStatusOf(reply.status));
  const message = Buffer.from(reply.body).toString("utf8", 0, MAX_MESSAGE) || ERRORS[code].message;
  return {
    ...reply,
    status: 200,
    headers: [...grpcError(request.headers, status, message), ...beside(reply.headers)],
    body: "",
  };
}

/** The response for an error: a text, or for gRPC a 200 with `grpc-status` and no body. Both have the error's headers. */
export function errorReply(
  request: Pick<HttpRequest, "headers">,
  { code, status, headers, body }: ErrorAnswer,
): LocalReply {
  if (body !== undefined) return rejectionReply(request, { status, headers: [...headers], body }, code);
  const { message } = ERRORS[code];
  if (!isGrpc(request.headers)) return { status, headers: ["content-type", "text/plain", ...headers], body: message };
  return {
    status: 200,
    headers: [...grpcError(request.headers, grpcStatusOfError(code), message), ...headers],
    body: "",
  };
}

/** The fields that remain: not those that describe the dropped body or a gRPC status, nor a redirect. */
function beside(headers: HeaderList): HeaderList {
  const kept: HeaderList = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (!/^(content|grpc)-/.test(name) && name !== "location") copyField(kept, headers, i);
  }
  return kept;
}
