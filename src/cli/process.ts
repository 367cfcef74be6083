import type { Context } from "./context.ts";
import type { Program } from "./define-command.ts";
import { Interruption, run } from "./runner.ts";

type Signals = Readonly<Record<string, number>>;

/** Ends a command in order: the exit codes of shells for SIGHUP, SIGINT and SIGTERM. */
export const INTERRUPTS: Signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/**
 * Runs this process's command line and exits with its code. The first of the `signals` aborts the command, a second one ends
 * the process at once; without signals the command handles them itself.
 */
export async function runProcess(program: Program, signals: Signals): Promise<never> {
  const abort = new AbortController();
  for (const [signal, code] of Object.entries(signals)) {
    process.on(signal, () => {
      if (abort.signal.aborted) process.exit(code);
      abort.abort(new Interruption(signal, code));
    });
  }
  // `tgctl … | head`: the reader has seen enough, which is not a failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    abort.abort(new Interruption(error.code ?? error.message, error.code === "EPIPE" ? 0 : 1));
  });
  const { stdin, stdout, stderr, env } = process;
  const context: Omit<Context, "json"> = { stdin, stdout, stderr, env, signal: abort.signal };
  process.exit(await run(program, process.argv.slice(2), context));
}
