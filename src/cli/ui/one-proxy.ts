import { AdminClientError } from "../../admin/client/client.ts";
import { withQuery } from "../../admin/client/client-request.ts";
import type { PlainReply } from "../../admin/server/reply.ts";
import { openTrace, type ProxyAdmin } from "../proxy/admin.ts";
import type { TraceRecord } from "../trace/source.ts";
import type { ViewQuestion, ViewSource } from "./server.ts";
import { unavailable } from "./unavailable.ts";

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
    trace: (query, signal) => traceAt(proxy, query, signal),
  };
}

/** The events of the next request at a proxy that fits the query of `/debug/trace`. @throws CliError */
export function traceAt(
  proxy: ProxyAdmin,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<AsyncGenerator<TraceRecord>> {
  const [expression, route, bodies, duration] = ["expression", "route", "bodies", "duration"].map(
    (name) => query.get(name) ?? undefined,
  );
  return openTrace(proxy, { expression, route, bodies, duration, token: undefined, reveal: false, signal });
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
