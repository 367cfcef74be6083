import { counted } from "../../../../base/counted.ts";
import type { TraceDifference } from "../../../../report/trace-diff.ts";
import { write, writeJson } from "../../../runner/context.ts";
import { defineCommand } from "../../../runner/define-command.ts";
import { CliError, usage } from "../../../runner/errors.ts";
import { readTrace, type SavedTrace } from "../../../trace/source.ts";
import { TRACE_FILE } from "./open.ts";

/** Exit code when the traces differ, as for diff(1). */
const DIFFERENT = 1;

export const diff = defineCommand({
  name: "diff",
  summary: "Show where two saved traces begin to differ",
  description: [
    "Compares the request as received, every decision and what it led to, and the bodies. Prints the first step that differs and everything after it: lines of the first trace with -, of the second with +. Ignores times, ids and ports. Exits with 1 if there is a difference.",
  ],
  argument: { ...TRACE_FILE, many: true },
  options: {
    exact: { type: "switch", summary: "Compare times, ids and ports too" },
  },
  examples: [
    {
      does: "Why does the same request get another response today?",
      run: "proxy trace diff yesterday.jsonl today.jsonl",
    },
    {
      does: "Compare with a request that is sent now",
      run: "proxy trace --save - --port 3000 -- http://a.test/ | tgctl proxy trace diff good.jsonl -",
    },
  ],
  async run({ words, options: { exact } }, context) {
    const [first, second] = words;
    if (first === undefined || second === undefined || words.length > 2)
      throw usage(`diff takes two files, received ${words.length}`, "tgctl trace diff before.jsonl after.jsonl");
    if (first === "-" && second === "-") throw usage("only one of the files can be standard input");
    const before = await readTrace(first, context.stdin);
    const after = await readTrace(second, context.stdin);
    const difference = await compare(before, after, exact);
    const same = difference.lines.length === 0;
    if (context.json) await writeJson(context, { same, ...difference });
    else await write(context.stdout, same ? "no difference\n" : await unified(before, after, difference));
    return same ? 0 : DIFFERENT;
  },
});

// Loaded here, because only this command needs it.

async function compare(before: SavedTrace, after: SavedTrace, exact: boolean): Promise<TraceDifference> {
  const { traceDifference } = await import("../../../../report/trace-diff.ts");
  try {
    return traceDifference(before.events, after.events, exact);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CliError("failure", `${before.name} and ${after.name} cannot be compared`, {
      why: "a proxy of another version has recorded events that this tgctl does not know",
      cause: error,
    });
  }
}

/** As a unified diff, with the outcome of each trace in place of a time. */
async function unified(before: SavedTrace, after: SavedTrace, { omitted, lines }: TraceDifference): Promise<string> {
  const { outcomeLine, outcomeOf } = await import("../../../../report/outcome.ts");
  const { rowsOf } = await import("../../../../report/rows.ts");
  const [old, now] = [before, after].map(({ name, events }) => `${name}: ${outcomeLine(outcomeOf(rowsOf(events)))}`);
  const equal = omitted === 0 ? [] : [`  … ${counted(omitted, "equal line")}`];
  const shown = lines.map(({ sign, text }) => `${sign} ${text}`);
  return `${[`--- ${old}`, `+++ ${now}`, ...equal, ...shown].join("\n")}\n`;
}
