/** The program `tracegate`. Commands that need the engine load it when they run, so `--help` answers at once. */
import { runProcess } from "./cli/process.ts";
import { tracegate } from "./main/commands.ts";

// The commands handle signals themselves: a gateway drains first.
await runProcess(tracegate, {});
