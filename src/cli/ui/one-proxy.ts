import { AdminClientError } from "../../admin/client/client.ts";
import { withQuery } from "../../admin/client/client-request.ts";
import { type PlainReply, textReply } from "../../admin/server/reply.ts";
import type { ProxyAdmin } from "../proxy/admin.ts";
import { CliError } from "../runner/errors.ts";
import type { ViewQuestion, ViewSource } from "./server.ts";

/** The view of one proxy: its own answers. */
export function oneProxy(proxy: ProxyAdmin): ViewSource {
  return {
    async answer(question) {
      try {
        const { status, text } = await askProxy(proxy, question);
        return { status, type: text.startsWith("{") ? "application/json" : "text/plain; charset=utf-8", body: text };
      } catch (error) {
        return unavailable(error);
      }
    },
  };
}

/** The response of a proxy to a question. @throws CliError if it does not respond */
async function askProxy(
  proxy: ProxyAdmin,
  { endpoint, method, changes, rest, query, body, signal }: ViewQuestion,
): Promise<{ readonly status: number; readonly text: string }> {
  const path = withQuery(`${endpoint}${encodeURIComponent(rest)}`, query);
  try {
    return await proxy.client.askForPage({ method, path, changes, body, signal });
  } catch (error) {
    throw error instanceof AdminClientError ? proxy.unreachable(error) : error;
  }
}

/** The reply that says why there is no answer; asking again may help. */
function unavailable(error: unknown): PlainReply {
  const { message, why, hint } = CliError.from(error);
  return textReply(503, [message, why, hint].flatMap((line) => (line === undefined ? [] : `${line}\n`)).join(""));
}
