/** The program `tgctl`. */
import { INTERRUPTS, runProcess } from "./runner/runner.ts";
import { tgctl } from "./tgctl.ts";

// Without a top-level `await`, which a bundle in CommonJS cannot have.
void runProcess(
  // The only import of the terminal UI: commands get it as an argument.
  tgctl(async () => (await import("../tui/views/trace-view.ts")).traceView),
  INTERRUPTS,
);
