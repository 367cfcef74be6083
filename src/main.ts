/** The program `tracegate`. Commands that need the engine load it when they run, so `--help` is fast. */
import { runProcess } from "./cli/runner/runner.ts";
import { tracegate } from "./main/commands.ts";

// The commands handle signals themselves: a gateway drains first. Without a top-level `await`, which a bundle in CommonJS cannot have.
void runProcess(tracegate, {});
