import type { ImmediateResponse } from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { HttpRequest, LocalReply } from "../../http/message.ts";
import { headerEdits, replyHeaders } from "../envoy/headers.ts";
import { refuse } from "../shared/refusal.ts";

/** What the service answers in the place of a backend. A gRPC client gets the status that it says, or the nearest one. */
export function immediateReply(
  { status, headers, body, grpcStatus }: ImmediateResponse,
  request: Pick<HttpRequest, "headers">,
): LocalReply {
  const code = status?.code ?? 0;
  const reply = {
    status: code >= 200 && code <= 599 ? code : 200,
    headers: replyHeaders(headerEdits(headers?.setHeaders, "add")),
    body,
    reason: "ExtProc",
  } as const;
  if (grpcStatus === undefined && reply.status < 400) return reply;
  return refuse(request, reply, "TG_EXT_PROC", grpcStatus?.status);
}
