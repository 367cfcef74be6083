import { type ChildProcess, fork, spawn } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { moduleUrl } from "../base/app-root.ts";
import { messageOf } from "../base/errors.ts";
import { StartError } from "./gateway.ts";
import { SUPERVISED } from "./supervised.ts";

/** `program` and its arguments, which run beside a gateway on `config` or `file`. */
interface OneshotOptions {
  readonly config: string | undefined;
  readonly file: string | undefined;
  /** File for the gateway's log. */
  readonly output: string | undefined;
  readonly program: readonly string[];
}

type Signal = (typeof PASSED_ON)[number];

const PASSED_ON = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
/** A terminal sends these to the program itself, which is of the same process group. */
const OF_TERMINALS: readonly Signal[] = ["SIGINT", "SIGQUIT"];
/** Exit codes of shells for a program that is not there, or is none. */
const NOT_FOUND = 127;
const NOT_A_PROGRAM = 126;

/**
 * Starts a gateway, runs the program once it serves, stops the gateway when the program has ended, and resolves with the
 * program's exit code: 128 and the signal's number when a signal has ended it, 127 when there is no such program; or with that
 * of the gateway when it does not start. Signals to this process go on to the program. The gateway's log goes to `output`, else
 * to standard error, for standard output is the program's. When this process is killed the gateway notices and stops.
 */
export async function oneshot({ config, file, program: command, output }: OneshotOptions): Promise<number> {
  const log = output === undefined ? 2 : openLog(output);
  const source = config === undefined ? `--file=${file}` : `--config=${config}`;
  // In a session of its own: what a terminal interrupts is the program.
  const gateway = fork(fileURLToPath(moduleUrl("main")), [source, SUPERVISED], {
    detached: true,
    stdio: ["ignore", log, 2, "ipc"],
  });
  if (log !== 2) closeSync(log);
  const gone = ended(gateway);
  const started = new Promise<undefined>((resolve) => gateway.once("message", () => resolve(undefined)));
  let program: ChildProcess | undefined;
  let interrupted: Signal | undefined;
  let stopping = false;
  for (const signal of PASSED_ON)
    process.on(signal, () => {
      if (stopping) process.exit(codeOf(signal));
      if (program !== undefined) {
        if (!(process.stdin.isTTY && OF_TERMINALS.includes(signal))) program.kill(signal);
        return;
      }
      interrupted ??= signal;
      gateway.kill("SIGTERM");
    });
  const early = await Promise.race([started, gone]);
  if (interrupted !== undefined) {
    await gone;
    return codeOf(interrupted);
  }
  if (early !== undefined) return early;
  const [name = "", ...rest] = command;
  program = spawn(name, rest, { stdio: "inherit" });
  let running = true;
  void gone.then((code) => {
    if (running) tell(`the gateway has ended with exit code ${code}; the program goes on without it`);
  });
  const code = await ended(program);
  running = false;
  stopping = true;
  gateway.kill("SIGTERM");
  await gone;
  return code;
}

function openLog(file: string): number {
  try {
    return openSync(file, "w");
  } catch (error) {
    throw new StartError(`--output ${file}: ${messageOf(error)}`);
  }
}

/** Resolves with the exit code as shells give it. */
function ended(child: ChildProcess): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  child.once("exit", (code, signal) => resolve(code ?? (signal === null ? 1 : codeOf(signal))));
  child.once("error", (error: NodeJS.ErrnoException) => {
    if (child.pid !== undefined) return;
    const missing = error.code === "ENOENT";
    tell(`${child.spawnfile}: ${missing ? "there is no such program" : error.message}`);
    resolve(missing ? NOT_FOUND : NOT_A_PROGRAM);
  });
  return promise;
}

function codeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

function tell(message: string): void {
  writeSync(2, `tracegate: ${message}\n`);
}
