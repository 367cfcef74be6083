import type { Fields } from "../../../../base/fields.ts";
import type { Row } from "../../../../report/rows.ts";
import { write } from "../../../runner/context.ts";
import { defineCommand } from "../../../runner/define-command.ts";
import { CliError, usage } from "../../../runner/errors.ts";
import { readTrace } from "../../../trace/source.ts";
import { TRACE_FILE } from "./open.ts";

/** Makes the text of an export; undefined if the trace has no request. Each is loaded only when it is used. */
type Exporter = (rows: readonly Row[]) => Promise<string | undefined>;

const EXPORTERS: Readonly<Record<string, Exporter>> = {
  html: async (rows) => (await import("../../../../report/export/html.ts")).htmlPage(rows),
  har: async (rows) => {
    const { harOf } = await import("../../../../report/export/har.ts");
    const har = harOf(rows);
    return har && `${JSON.stringify(har, null, 2)}\n`;
  },
  curl: async (rows) => (await import("../../../../report/export/curl.ts")).curlCommand(rows),
};
const FORMATS = Object.keys(EXPORTERS);

export const exportCommand = defineCommand({
  name: "export",
  summary: "Convert a saved trace for other tools, without secrets",
  description: [
    "html: one page for a colleague, at most 300 KiB and without scripts: outcome, decisions, a timeline of events, and what each changed. har: an HTTP Archive for the network panel of a browser. curl: a command that sends the request again.",
    "Secrets are redacted even if the trace was recorded with --reveal; bodies are not changed. Writes to standard output.",
  ],
  argument: TRACE_FILE,
  options: {
    format: {
      type: "text",
      value: "format",
      choices: FORMATS,
      invalid: (value: string) => `format "${value}" not supported; one of ${FORMATS.join(", ")}`,
      summary: "What to write",
    },
  },
  examples: [
    { does: "A page to give to a colleague", run: "proxy trace export --format html trace.jsonl > trace.html" },
    { does: "For the network panel of Chromium", run: "proxy trace export --format har trace.jsonl > trace.har" },
    { does: "Send the request again", run: "proxy trace export --format curl trace.jsonl" },
    {
      does: "Without a file",
      run: "proxy trace --raw --port 3000 -- http://a.test/ | tgctl proxy trace export --format har - > trace.har",
    },
  ],
  async run({ argument = "-", options: { format = "" } }, context) {
    const make = EXPORTERS[format];
    if (make === undefined) throw usage(`export needs --format, one of ${FORMATS.join(", ")}`);
    const { name, events } = await readTrace(argument, context.stdin);
    const { rowsOf } = await import("../../../../report/rows.ts");
    const { withoutSecrets } = await import("../../../../report/export/without-secrets.ts");
    const text = await make(rowsOf(withoutSecrets(events)));
    if (text === undefined) throw nothingToExport(name, events, format);
    await write(context.stdout, text);
  },
});

function nothingToExport(name: string, events: readonly Fields[], format: string): CliError {
  return new CliError("failure", `the trace in ${name} has no request that ${format} could show`, {
    why: `its ${events.length} events are those of a connection, or of a request that could not be read`,
    hint: "`tgctl trace open` shows it",
  });
}
