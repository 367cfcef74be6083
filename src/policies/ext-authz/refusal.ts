import { ERRORS } from "../../base/errors.ts";
import { grpcError, grpcStatusOf, isGrpc } from "../../http/grpc-reply.ts";
import type { HeaderList, HttpRequest, LocalReply } from "../../http/message.ts";

/** Bytes of a service's answer that become the message of a gRPC status: it stands in a header. */
const MAX_MESSAGE = 1024;

/**
 * The service's refusal as this client can read it: a gRPC client gets a status in its header fields, unless the service has
 * answered in gRPC itself. Always a copy: what is kept in the cache answers others too.
 */
export function refuse(request: Pick<HttpRequest, "headers">, reply: LocalReply): LocalReply {
  if (!isGrpc(request.headers) || isGrpc(reply.headers)) return { ...reply, headers: [...reply.headers] };
  // A gRPC client cannot be sent elsewhere, and has nothing of a success that is none.
  const status = grpcStatusOf(reply.status < 400 ? ERRORS.TG_EXT_AUTHZ.status : reply.status);
  const message = Buffer.from(reply.body).toString("utf8", 0, MAX_MESSAGE) || ERRORS.TG_EXT_AUTHZ.message;
  return { ...reply, status: 200, headers: [...grpcError(status, message), ...beside(reply.headers)], body: "" };
}

/** What does not speak of the body, which is left out, nor of a gRPC status. */
function beside(headers: HeaderList): HeaderList {
  const kept: HeaderList = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (!/^(content|grpc)-/.test(name) && name !== "location") kept.push(name, headers[i + 1] as string);
  }
  return kept;
}
