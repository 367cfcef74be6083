/** The program `tgctl`. */
import { INTERRUPTS, runProcess } from "./process.ts";
import { tgctl } from "./tgctl.ts";

await runProcess(
  // The only place of the client that knows the terminal UI.
  tgctl(async () => (await import("../tui/trace-view.ts")).traceView),
  INTERRUPTS,
);
