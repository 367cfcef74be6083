import { type Context, write } from "../context.ts";
import type { TraceSource } from "./view.ts";

/** Prints each event's JSON on one line as it arrives. Problems go to stderr, progress only to one that somebody watches. */
export async function printRaw(source: TraceSource, context: Context): Promise<void> {
  for await (const item of source.items) {
    if (item.kind === "event") await write(context.stdout, `${item.raw}\n`);
    else if (item.kind === "problem" || context.stderr.isTTY) await write(context.stderr, `${item.text}\n`);
    if (context.signal.aborted) return;
  }
}
