import type { RequestRecord } from "../src/recorder/records.ts";

/**
 * A command that sends such a request again, without the query, fields and body, which are not recorded. undefined for connections
 * and sessions.
 */
export function curlOf({ method, host, path, kind, bind }: RequestRecord): string | undefined {
  if (method === undefined || host === undefined || kind !== undefined) return undefined;
  const [, port = ""] = /\/(\d+)$/.exec(bind ?? "") ?? [];
  const url = `http://${host.includes(":") || port === "" ? host : `${host}:${port}`}${path}`;
  return ["curl -i", ...(method === "GET" ? [] : [`-X ${quoted(method)}`]), quoted(url)].join(" ");
}

/** For a POSIX shell, where only a quote ends what a quote began. */
function quoted(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
