/** Recorded requests as something to send again. */
import { shellWord } from "../src/base/shell-word.ts";
import type { RequestRecord } from "../src/recorder/records.ts";
import { urlToSend } from "../src/report/recorded.ts";

/**
 * A command that sends such a request again, without the query, fields and body, which are not recorded. undefined for connections
 * and sessions.
 */
export function curlOf(record: RequestRecord): string | undefined {
  const { method } = record;
  const url = urlToSend(record);
  if (method === undefined || url === undefined) return undefined;
  return ["curl -i", ...(method === "GET" ? [] : [`-X ${shellWord(method)}`]), shellWord(url)].join(" ");
}
