import type { Group } from "../../../runner/define-command.ts";
import type { TraceView } from "../../../trace/view.ts";
import { diff } from "./diff.ts";
import { exportCommand } from "./export.ts";
import { openCommand } from "./open.ts";
import { watchCommand } from "./watch.ts";

/** `loadTraceView` loads the terminal UI: only a command that shows it pays for that. */
export const traceGroup = (loadTraceView: () => Promise<TraceView>): Group => ({
  name: "trace",
  summary: "Show step by step what the proxy does with one request",
  commands: [watchCommand(loadTraceView), openCommand(loadTraceView), diff, exportCommand],
  fallback: "watch",
});
