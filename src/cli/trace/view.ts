import type { TraceItem } from "./records.ts";

/** Where a trace comes from, to whoever shows it. */
export interface TraceSource {
  /** Shown in the title: `localhost:15000`, a file name. */
  readonly title: string;
  /** Ends when the stream does; throws when it breaks. */
  readonly items: AsyncIterable<TraceItem>;
}

/** What the view needs to know of the process. */
export interface ViewProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** The terminal UI, as the trace command sees it. Resolves when the reader quits; rejects when the trace failed before its first event. */
export interface TraceView {
  show(source: TraceSource, process: ViewProcess): Promise<void>;
}
