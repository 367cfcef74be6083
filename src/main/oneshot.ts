import { type ChildProcess, fork, spawn } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { moduleUrl } from "../base/app-root.ts";
import { fileProblem } from "../base/file-problem.ts";
import { CliError } from "../cli/runner/errors.ts";
import { FREE_PORTS } from "../config/free-ports.ts";
import { SUPERVISED } from "./supervised.ts";

/** A program with its arguments, and the configuration of the gateway beside it. */
interface OneshotOptions {
  readonly config: string | undefined;
  readonly files: readonly string[];
  /** File for the gateway's log. */
  readonly output: string | undefined;
  readonly program: readonly string[];
}

type Signal = (typeof FORWARDED)[number];

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
/** A terminal sends these to the whole process group, so the program gets them without us. */
const SENT_BY_TERMINALS: readonly Signal[] = ["SIGINT", "SIGQUIT"];
/** Exit codes of shells for a program that does not exist, or cannot be executed. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;

/**
 * Starts a gateway, runs the program once it is ready, and stops the gateway when the program has ended. Resolves with the exit
 * code of the program as shells report it (128 + signal number, 127 if it does not exist), or that of a gateway that fails to
 * start. Signals are forwarded to the program. The gateway logs to `output`, by default to standard error, because standard
 * output belongs to the program. If this process is killed, the gateway stops too (supervised.ts).
 */
export async function oneshot({ config, files, program: command, output }: OneshotOptions): Promise<number> {
  const log = output === undefined ? 2 : openLog(output);
  const source = config === undefined ? files.map((file) => `--file=${file}`) : [`--config=${config}`];
  // In its own session, so that Ctrl-C in a terminal interrupts the program and not the gateway.
  const gateway = fork(fileURLToPath(moduleUrl("main")), [...source, SUPERVISED], {
    detached: true,
    stdio: ["ignore", log, 2, "ipc"],
    env: { ...process.env, [FREE_PORTS]: "1" },
  });
  if (log !== 2) closeSync(log);
  const exited = ended(gateway);
  const started = new Promise<undefined>((resolve) => gateway.once("message", () => resolve(undefined)));
  let program: ChildProcess | undefined;
  let interrupted: Signal | undefined;
  let stopping = false;
  for (const signal of FORWARDED)
    process.on(signal, () => {
      if (stopping) process.exit(codeOf(signal));
      if (program !== undefined) {
        if (!(process.stdin.isTTY && SENT_BY_TERMINALS.includes(signal))) program.kill(signal);
        return;
      }
      interrupted ??= signal;
      gateway.kill("SIGTERM");
    });
  const early = await Promise.race([started, exited]);
  if (interrupted !== undefined) {
    await exited;
    return codeOf(interrupted);
  }
  if (early !== undefined) return early;
  const [name = "", ...rest] = command;
  program = spawn(name, rest, { stdio: "inherit" });
  let running = true;
  void exited.then((code) => {
    if (running) printError(`the gateway exited with code ${code}; the program continues without it`);
  });
  const code = await ended(program);
  running = false;
  stopping = true;
  gateway.kill("SIGTERM");
  await exited;
  return code;
}

function openLog(file: string): number {
  try {
    return openSync(file, "w");
  } catch (error) {
    throw new CliError("failure", `--output ${file}: ${fileProblem(error)}`);
  }
}

/** Resolves with the exit code as shells report it. */
function ended(child: ChildProcess): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  child.once("exit", (code, signal) => resolve(code ?? (signal === null ? 1 : codeOf(signal))));
  child.once("error", (error: NodeJS.ErrnoException) => {
    if (child.pid !== undefined) return;
    const missing = error.code === "ENOENT";
    printError(`${child.spawnfile}: ${missing ? "no such program" : error.message}`);
    resolve(missing ? NOT_FOUND : NOT_EXECUTABLE);
  });
  return promise;
}

function codeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

function printError(message: string): void {
  writeSync(2, `tracegate: ${message}\n`);
}
