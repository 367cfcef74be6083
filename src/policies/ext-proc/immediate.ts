import type { HttpRequest, LocalReply } from "../../http/message.ts";
import type { Immediate } from "../envoy/ext-proc.ts";
import { headerEdits, replyHeaders } from "../envoy/headers.ts";
import { refuse } from "../shared/refusal.ts";

/** What the service answers in the place of a backend. A gRPC client gets the status that it says, or the nearest one. */
export function immediateReply(
  { status, headers, body, grpc_status }: Immediate,
  request: Pick<HttpRequest, "headers">,
): LocalReply {
  const code = status?.code ?? 0;
  const reply = {
    status: code >= 200 && code <= 599 ? code : 200,
    headers: replyHeaders(headerEdits(headers?.set_headers, "add")),
    body: body ?? "",
    reason: "ExtProc",
  } as const;
  if (grpc_status === undefined && reply.status < 400) return reply;
  return refuse(request, reply, "TG_EXT_PROC", grpc_status?.status);
}
