import type { Fields } from "../../base/fields.ts";
import { traceFileText } from "../../report/trace-file.ts";
import { type Context, write } from "../runner/context.ts";
import type { OptionSpecs } from "../runner/define-command.ts";
import { usage } from "../runner/errors.ts";
import { OUTPUT_OPTION } from "../runner/output-option.ts";
import { TraceFile } from "./save.ts";
import type { TraceItem, TraceSource } from "./source.ts";
import type { TraceView } from "./view.ts";

/** Options that choose how a trace is shown. */
export const FORMAT_OPTIONS = {
  output: {
    ...OUTPUT_OPTION,
    choices: ["text", "json", "jsonl"],
    summary:
      "Print a line per event instead of opening the full-screen view: text is readable, json and jsonl are one event per line",
  },
  raw: { type: "switch", summary: "The same as -o json" },
  tree: {
    type: "switch",
    summary: "Wait for the end of the request, then print what happened and every decision as a tree",
  },
} as const satisfies OptionSpecs;

export type Format = "text" | "json" | "tree";

interface FormatWords {
  readonly output: string | undefined;
  readonly raw: boolean;
  readonly tree: boolean;
}

/** The format that the options choose; undefined if it depends on where the output goes. Throws usage errors. */
export function formatOf({ output, raw, tree }: FormatWords, context: Context): Format | undefined {
  if (raw && output === "text") throw usage("--raw and -o text are mutually exclusive");
  if (tree && (raw || output !== undefined)) throw usage("--tree is an output of its own; leave out --raw and -o");
  if (tree) return "tree";
  if (output === "text") return "text";
  return raw || output !== undefined || context.json ? "json" : undefined;
}

/** How a trace is shown, and where it is saved. */
interface Presentation {
  /** Without one: the full-screen view where the terminal can show it, text where it cannot, JSON into pipes and files. */
  readonly format: Format | undefined;
  /** The file for the whole trace; `-` writes it to standard output instead of showing it. */
  readonly save?: string | undefined;
}

/** Shows a trace, and saves it if asked, even if its stream breaks or the user interrupts it. */
export async function present(
  source: TraceSource,
  { format, save }: Presentation,
  context: Context,
  loadTraceView: () => Promise<TraceView>,
): Promise<void> {
  if (save === undefined) return show(source, format, context, loadTraceView);
  const file = save === "-" ? undefined : await TraceFile.open(save);
  const events: Fields[] = [];
  const kept = { ...source, items: keeping(source.items, events) };
  const { revealed = false } = source;
  try {
    if (file === undefined) await printRaw(kept, context, true);
    else await show(kept, format, context, loadTraceView);
  } finally {
    if (file !== undefined) await file.end(events, revealed);
    else if (events.length > 0) await write(context.stdout, traceFileText(events, revealed));
  }
}

async function* keeping(items: AsyncIterable<TraceItem>, events: Fields[]): AsyncGenerator<TraceItem> {
  for await (const item of items) {
    if (item.kind === "event") events.push(item.event);
    yield item;
  }
}

async function show(
  source: TraceSource,
  format: Format | undefined,
  context: Context,
  loadTraceView: () => Promise<TraceView>,
): Promise<void> {
  if (format === "text" || format === "tree") return printText(source, format, context);
  if (format !== undefined || !context.stdout.isTTY) return printRaw(source, context);
  if (await showsFullScreen(context)) return (await loadTraceView()).show(source, context);
  return printText(source, "text", context);
}

/** Whether this terminal can show the full-screen view; if not, says why, and that there will be text. */
export async function showsFullScreen(context: Context): Promise<boolean> {
  const reason = noFullScreen(context);
  if (reason !== undefined)
    await write(context.stderr, `${reason}, printing text; -o text does so without this note\n`);
  return reason === undefined;
}

/** Why this terminal cannot show the full-screen view; undefined if it can. */
function noFullScreen({ env }: Context): string | undefined {
  if (env.TERM === "dumb") return "this terminal cannot show a full-screen view (TERM=dumb)";
  // Ink draws nothing when these variables say that it runs in continuous integration.
  if ([env.CI, env.CONTINUOUS_INTEGRATION].some((value) => value !== undefined && value !== "0" && value !== "false")) {
    return "this is a continuous integration environment (CI is set)";
  }
  return undefined;
}

/** Prints each event's JSON on one line as it arrives, unless `quiet`. Problems go to stderr, progress only if that is a terminal. */
async function printRaw(source: TraceSource, context: Context, quiet = false): Promise<void> {
  for await (const item of source.items) {
    if (item.kind === "event") {
      if (!quiet) await write(context.stdout, `${item.raw}\n`);
    } else if (item.kind === "problem" || context.stderr.isTTY) await write(context.stderr, `${item.text}\n`);
    if (context.signal.aborted) return;
  }
}

/**
 * Prints the name of the replica, a readable line per event as it arrives (not as `tree`), and at the end the outcome and the tree of
 * decisions. Progress goes to stderr.
 */
async function printText(source: TraceSource, format: "text" | "tree", context: Context): Promise<void> {
  const { TextLines } = await import("../../report/outcome.ts");
  const { writeLines } = await import("../runner/screen.ts");
  const lines = new TextLines();
  for await (const item of source.items) {
    if (item.kind === "event") {
      const line = lines.event(item.event);
      if (format === "text") await write(context.stdout, line);
    } else if (item.kind === "problem") await write(context.stdout, lines.problem(item.text));
    else if (item.kind === "source") await write(context.stdout, `${item.text}\n`);
    else if (context.stderr.isTTY) await write(context.stderr, `${item.text}\n`);
    if (context.signal.aborted) return;
  }
  await writeLines(context, lines.end());
}
