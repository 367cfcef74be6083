import type { Fields } from "../../../../base/fields.ts";
import { exportedTrace } from "../../../../report/export/exports.ts";
import { EXPORT_FORMATS } from "../../../../report/export/formats.ts";
import { write } from "../../../runner/context.ts";
import { defineCommand } from "../../../runner/define-command.ts";
import { CliError, usage } from "../../../runner/errors.ts";
import { readTrace } from "../../../trace/source.ts";
import { TRACE_FILE } from "./open.ts";

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
      choices: EXPORT_FORMATS,
      invalid: (value: string) => `format "${value}" not supported; one of ${EXPORT_FORMATS.join(", ")}`,
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
    const chosen = EXPORT_FORMATS.find((each) => each === format);
    if (chosen === undefined) throw usage(`export needs --format, one of ${EXPORT_FORMATS.join(", ")}`);
    const { name, events } = await readTrace(argument, context.stdin);
    const text = await exportedTrace(chosen, events);
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
