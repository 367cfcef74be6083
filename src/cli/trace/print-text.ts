import { type Context, write } from "../context.ts";
import type { TraceSource } from "./view.ts";

/** Prints each event as a line for people as it arrives, and at the end the verdict. Progress goes to stderr. */
export async function printText(source: TraceSource, context: Context): Promise<void> {
  const { TextLines } = await import("../../tui/text-lines.ts");
  const lines = new TextLines();
  for await (const item of source.items) {
    if (item.kind === "event") await write(context.stdout, lines.event(item.event));
    else if (item.kind === "problem") await write(context.stdout, lines.problem(item.text));
    else if (context.stderr.isTTY) await write(context.stderr, `${item.text}\n`);
    if (context.signal.aborted) return;
  }
  await write(context.stdout, lines.end());
}
