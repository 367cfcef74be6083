import type { LocalReply } from "../../http/message.ts";
import type { Immediate } from "../envoy/ext-proc.ts";
import { headerEdits, replyHeaders } from "../envoy/headers.ts";

/** What the service answers in the place of a backend. */
export function immediateReply({ status, headers, body }: Immediate): LocalReply {
  const code = status?.code ?? 0;
  return {
    status: code >= 200 && code <= 599 ? code : 200,
    headers: replyHeaders(headerEdits(headers?.set_headers, "add")),
    body: body ?? "",
    reason: "ExtProc",
  };
}
