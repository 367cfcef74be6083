import { complete } from "./completion.ts";
import { type Context, write } from "./context.ts";
import type { Program } from "./define-command.ts";
import { CliError, exitCode, renderError, renderErrorJson } from "./errors.ts";
import { renderHelp } from "./help.ts";
import { parseCommandLine, splitRest } from "./parse.ts";

/** The word that shell completion puts before the words on its command line. */
const COMPLETE = "__complete";

/**
 * Runs one command line (without the program's name) and returns its exit code; what it prints goes to the context's
 * streams. Never throws. A command that failed because the signal was aborted counts as that signal, not as a failure.
 */
export async function run(program: Program, argv: readonly string[], base: Omit<Context, "json">): Promise<number> {
  // Read before parsing: it may stand anywhere, and decides how a wrong command line is reported.
  const context = { ...base, json: splitRest(argv).words.includes("--json") };
  try {
    const code = await dispatch(program, argv, context);
    return context.signal.aborted ? signalCode(context.signal) : (code ?? 0);
  } catch (thrown) {
    if (context.signal.aborted) return signalCode(context.signal);
    const error = CliError.from(thrown);
    await write(context.stderr, context.json ? renderErrorJson(error) : renderError(error, program.errorPrefix));
    return exitCode(error.kind);
  }
}

async function dispatch(program: Program, argv: readonly string[], context: Context): Promise<number | undefined> {
  const [first, ...words] = argv;
  if (first === COMPLETE) return void (await write(context.stdout, complete(program, words)));
  const request = parseCommandLine(program, argv);
  switch (request.kind) {
    case "help":
      return void (await write(context.stdout, renderHelp(program, request.found)));
    case "version":
      return void (await program.version(request.form, context));
    case "run": {
      const code = await request.command.run(request.invocation, context);
      return typeof code === "number" ? code : undefined;
    }
  }
}

/** Aborting the context's signal with this reason makes `run` return that exit code. */
class Interruption extends Error {
  readonly exitCode: number;
  constructor(name: string, code: number) {
    super(name);
    this.exitCode = code;
  }
}

function signalCode(signal: AbortSignal): number {
  return signal.reason instanceof Interruption ? signal.reason.exitCode : 1;
}

type Signals = Readonly<Record<string, number>>;

/** Signals that end a command, with the exit codes that shells use (128 + number). */
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
  // `tgctl … | head`: a closed pipe is not a failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    abort.abort(new Interruption(error.code ?? error.message, error.code === "EPIPE" ? 0 : 1));
  });
  const { stdin, stdout, stderr, env } = process;
  const context: Omit<Context, "json"> = { stdin, stdout, stderr, env, signal: abort.signal };
  process.exit(await run(program, process.argv.slice(2), context));
}
