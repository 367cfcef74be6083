import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import { grpcError, grpcStatusOf, isGrpc } from "../../http/grpc-reply.ts";
import type { HeaderList, HttpRequest, LocalReply } from "../../http/message.ts";
import { copyField } from "../../http/message.ts";

/** Bytes of a service's answer that become the message of a gRPC status: it stands in a header. */
const MAX_MESSAGE = 1024;

/**
 * A service's refusal as this client can read it: a gRPC client gets a status in its header fields, unless the service has
 * answered in gRPC itself. `code` says what the refusal is where the service does not, `grpcStatus` is what it has said.
 * Always a copy: what a service has said may answer others too.
 */
export function refuse(
  request: Pick<HttpRequest, "headers">,
  reply: LocalReply,
  code: ErrorCode,
  grpcStatus?: number,
): LocalReply {
  if (!isGrpc(request.headers) || isGrpc(reply.headers)) return { ...reply, headers: [...reply.headers] };
  // A gRPC client cannot be sent elsewhere, and has nothing of a success that is none.
  const status = grpcStatus ?? grpcStatusOf(reply.status < 400 ? ERRORS[code].status : reply.status);
  const message = Buffer.from(reply.body).toString("utf8", 0, MAX_MESSAGE) || ERRORS[code].message;
  return { ...reply, status: 200, headers: [...grpcError(status, message), ...beside(reply.headers)], body: "" };
}

/** What does not speak of the body, which is left out, nor of a gRPC status. */
function beside(headers: HeaderList): HeaderList {
  const kept: HeaderList = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (!/^(content|grpc)-/.test(name) && name !== "location") copyField(kept, headers, i);
  }
  return kept;
}
