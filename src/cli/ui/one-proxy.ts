import { AdminClientError } from "../../admin/client/client.ts";
import { withQuery } from "../../admin/client/client-request.ts";
import { type PlainReply, textReply } from "../../admin/server/reply.ts";
import type { ProxyAdmin } from "../proxy/admin.ts";
import { CliError } from "../runner/errors.ts";
import type { ViewQuestion, ViewSource } from "./server.ts";

/** What a proxy has responded with. */
export interface ProxyResponse {
  readonly status: number;
  readonly text: string;
}

/** The view of one proxy: its own answers. */
export function oneProxy(proxy: ProxyAdmin): ViewSource {
  return {
    async answer(question) {
      try {
        return replyOf(await askProxy(proxy, question));
      } catch (error) {
        return unavailable(error);
      }
    },
  };
}

/** Asks a proxy. @throws CliError if it does not respond */
export async function askProxy(
  proxy: ProxyAdmin,
  { endpoint, method, changes, rest, query, body, signal }: ViewQuestion,
): Promise<ProxyResponse> {
  const path = withQuery(`${endpoint}${encodeURIComponent(rest)}`, query);
  try {
    return await proxy.client.askForPage({ method, path, changes, body, signal });
  } catch (error) {
    throw error instanceof AdminClientError ? proxy.unreachable(error) : error;
  }
}

/** The response of a proxy, passed on. */
export function replyOf({ status, text }: ProxyResponse): PlainReply {
  return { status, type: text.startsWith("{") ? "application/json" : "text/plain; charset=utf-8", body: text };
}

/** The reply that says why there is no answer; asking again may help. */
export function unavailable(error: unknown): PlainReply {
  return textReply(503, `${problemOf(error)}\n`);
}

/** Anything thrown as lines of text, with its cause and what to do. */
export function problemOf(error: unknown): string {
  const { message, why, hint } = CliError.from(error);
  return [message, why, hint].filter((line) => line !== undefined).join("\n");
}
