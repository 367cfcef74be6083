/** The program `tgctl`. */
import { INTERRUPTS, runProcess } from "./runner.ts";
import { tgctl } from "./tgctl.ts";

// Without a top-level `await`, which a bundle in CommonJS cannot have.
void runProcess(
  // The only place of the client that knows the terminal UI.
  tgctl(async () => (await import("../tui/trace-view.ts")).traceView),
  INTERRUPTS,
);
