/** `tgctl`: wires the commands to this process. The only file of the client that knows the terminal UI. */
import { commands } from "./commands/index.ts";
import { Interruption, run } from "./runner.ts";

const abort = new AbortController();
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
for (const [signal, code] of Object.entries(SIGNALS)) {
  process.on(signal, () => {
    // The first signal ends the command in order, a second one at once.
    if (abort.signal.aborted) process.exit(code);
    abort.abort(new Interruption(signal, code));
  });
}
// `tgctl … | head`: the reader has seen enough, which is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  abort.abort(new Interruption(error.code ?? error.message, error.code === "EPIPE" ? 0 : 1));
});

const exitCode = await run(commands, process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  signal: abort.signal,
  loadTraceView: async () => (await import("../tui/trace-view.ts")).traceView,
});
process.exit(exitCode);
