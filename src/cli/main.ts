/** The program `tgctl`, which is a plugin of kubectl if it is called so. */
import { basename } from "node:path";
import { INTERRUPTS, runProcess } from "./runner/runner.ts";
import { tgctl } from "./tgctl.ts";

// Without a top-level `await`, which a bundle in CommonJS cannot have.
void runProcess(
  // The only import of the terminal UI: commands get it as an argument.
  tgctl(
    async () => {
      // As in the bundle: in development mode, React measures each component, and drawing takes several times as long.
      Object.assign(process.env, { NODE_ENV: "production" });
      return (await import("../tui/views/trace-view.ts")).traceView;
    },
    basename(process.argv0) === "kubectl-tracegate" ? "kubectl tracegate" : "tgctl",
  ),
  INTERRUPTS,
);
