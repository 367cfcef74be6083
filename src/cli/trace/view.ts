/** The terminal UI, as commands see it; a later room implements it. */
import type { Followed } from "./followed.ts";
import type { TraceSource } from "./source.ts";

/** Requests as they happen, for the view of many. */
interface FollowSource {
  /** Shown in the title: `http://localhost:15000`, `gateway/web`. */
  readonly title: string;
  /** Does not throw: a stream that breaks says so in its last item. */
  readonly items: AsyncIterable<Followed>;
}

/** The part of the process that the view uses. */
export interface ViewProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** The views on the terminal of this process. */
export interface TraceView {
  /** Resolves when the reader quits; rejects when the trace failed before its first event. */
  show(source: TraceSource, process: ViewProcess): Promise<void>;
  /** Shows many requests; resolves when the reader quits. */
  follow(source: FollowSource, process: ViewProcess): Promise<void>;
}
