import { type Command, defineCommand } from "../../../runner/define-command.ts";
import { FORMAT_OPTIONS, formatOf, present } from "../../../trace/present.ts";
import { sourceOfFile } from "../../../trace/source.ts";
import type { TraceView } from "../../../trace/view.ts";

/** The argument that names a trace file. */
export const TRACE_FILE = {
  name: "file",
  summary: "A file of --save, the output of --raw, or the text of the event stream; - reads standard input",
  required: true,
  completes: "file",
} as const;

export const openCommand = (loadTraceView: () => Promise<TraceView>): Command =>
  defineCommand({
    name: "open",
    summary: "Show a saved trace",
    description: ["Shows it as `watch` shows a live trace: on a terminal, in the full-screen view."],
    argument: TRACE_FILE,
    options: FORMAT_OPTIONS,
    examples: [
      { does: "In the full-screen view", run: "proxy trace open trace.jsonl" },
      { does: "What happened, and every decision", run: "proxy trace open --tree trace.jsonl" },
      { does: "The plain stream of events", run: "proxy trace open --raw trace.jsonl" },
    ],
    async run({ argument = "-", options }, context) {
      await present(
        sourceOfFile(argument, context.stdin),
        { format: formatOf(options, context) },
        context,
        loadTraceView,
      );
    },
  });
