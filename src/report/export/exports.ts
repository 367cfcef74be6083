/** Traces and recorded requests as files for other tools and other people. Each exporter is loaded only when it is used. */
import type { Fields } from "../../base/fields.ts";
import type { Explanation } from "../../rehearsal/explanation.ts";
import type { ExportFile, ExportFormat } from "./formats.ts";

/** The events of a trace in another format, without secrets; undefined if they have no request. */
export async function exportedTrace(format: ExportFormat, events: readonly Fields[]): Promise<string | undefined> {
  const { withoutSecrets } = await import("./without-secrets.ts");
  const { rowsOf } = await import("../rows.ts");
  const rows = rowsOf(withoutSecrets(events));
  switch (format) {
    case "html":
      return (await import("./html.ts")).htmlPage(rows);
    case "har":
      return jsonText((await import("./har.ts")).harOf(rows));
    case "curl":
      return (await import("./curl.ts")).curlCommand(rows);
  }
}

/** A recorded request with its explanation; undefined if the format cannot show it: a HAR has no connections. */
export async function exportedRecord(format: ExportFile, explanation: Explanation): Promise<string | undefined> {
  const { record } = explanation;
  if (record === undefined) return undefined;
  if (format === "html") return (await import("./html.ts")).recordPage(record, explanation);
  return jsonText((await import("./har.ts")).harOfRecord(record));
}

function jsonText(har: Fields | undefined): string | undefined {
  return har && `${JSON.stringify(har, null, 2)}\n`;
}
