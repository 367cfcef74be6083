/** Processes under test: started pinned to cores, measured through /proc, and always stopped at the end. Linux only. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, createWriteStream, existsSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { chmod, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** The Node that runs the bench also runs its helpers and tracegate. */
export const NODE = process.execPath;
/** The launchers take the first Node.js on PATH, as they do where the package is installed. */
export const NODE_FIRST = { ...process.env, PATH: `${dirname(NODE)}${delimiter}${process.env.PATH}` };

const running = new Set<Child>();
const folders = new Set<string>();
let abandoned = false;

/** Clock ticks per second in /proc/<pid>/stat: USER_HZ, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

export interface ChildOptions {
  /** Cores for taskset, e.g. "0" or "0,1"; absent = any. */
  readonly cpus?: string;
  readonly env?: NodeJS.ProcessEnv;
  /**
   * Where standard output goes: "pipe" to read it, "ignore" = /dev/null, else the path of a file to append to. Standard error
   * goes to `<name>.log` in `folder`.
   */
  readonly stdout: "pipe" | "ignore" | { readonly file: string };
  readonly folder: string;
}

/** A started program. Its open-file limit is raised to the hard limit; the launchers exec, so `pid` is the program's own. */
export class Child {
  readonly name: string;
  readonly process: ChildProcess;
  readonly pid: number;
  readonly #log: string;

  constructor(name: string, command: readonly string[], options: ChildOptions) {
    this.name = name;
    this.#log = join(options.folder, `${name}.log`);
    if (abandoned) throw new Error("interrupted");
    const { stdout } = options;
    const output = typeof stdout === "string" ? stdout : openSync(stdout.file, "a");
    const pinned = options.cpus === undefined ? command : ["taskset", "-c", options.cpus, ...command];
    this.process = spawn("sh", ["-c", 'ulimit -n "$(ulimit -Hn)"; exec "$@"', "sh", ...pinned], {
      stdio: ["pipe", output, "pipe"],
      env: options.env ?? process.env,
    });
    if (typeof output === "number") closeSync(output);
    const { pid, stderr } = this.process;
    if (pid === undefined || stderr === null) throw new Error(`cannot start ${name}: ${command.join(" ")}`);
    this.pid = pid;
    stderr.pipe(createWriteStream(this.#log, { flags: "a" }));
    running.add(this);
    this.process.once("exit", () => running.delete(this));
  }

  get exited(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }

  /** The end of what the program wrote to standard error, for error messages. */
  logTail(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8").slice(-2000) : "";
  }

  /** All of standard output, once the program has ended; throws with the log when it failed. */
  async output(): Promise<string> {
    const { stdout } = this.process;
    if (stdout === null) throw new Error(`${this.name}: its standard output is not piped`);
    const ended = once(this.process, "exit");
    let text = "";
    for await (const chunk of stdout) text += String(chunk);
    await ended;
    if (this.process.exitCode !== 0) throw new Error(`${this.name} failed: ${text.slice(-500)} ${this.logTail()}`);
    return text;
  }

  /** SIGTERM; after five seconds SIGKILL to it and whatever it started. */
  async stop(): Promise<void> {
    if (this.exited) return;
    const tree = processTree(this.pid);
    const ended = once(this.process, "exit");
    this.process.kill("SIGTERM");
    const late = new AbortController();
    const timedOut = await Promise.race([
      ended.then(() => false),
      delay(5000, true, { signal: late.signal }).catch(() => false),
    ]);
    late.abort();
    if (!timedOut) return;
    for (const pid of tree) kill(pid);
    await ended;
  }
}

/** Stops everything still running and removes the folders; never throws. */
export async function stopAll(): Promise<void> {
  await Promise.allSettled([...running].map((child) => child.stop()));
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  folders.clear();
}

/** Like `stopAll`, and nothing can be started afterwards: for signals, which arrive while rows are running. */
export async function abandon(): Promise<void> {
  abandoned = true;
  await stopAll();
}

/** A folder for configuration and logs, removed at the end. Readable by others: nginx drops its rights. */
export async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tracegate-bench-"));
  folders.add(folder);
  await chmod(folder, 0o755);
  return folder;
}

/** Absolute path of a program on PATH (and in the sbin folders, where Debian puts proxies), or undefined. */
export function findProgram(name: string): string | undefined {
  const places = [...(process.env.PATH ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin"];
  return places.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/** Microseconds of CPU (user + system, all threads, dead ones included) that the process and its descendants have used. */
export function cpuMicros(pid: number): number {
  const ticks = processTree(pid).map((id) => {
    const fields = statFields(id);
    return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  });
  return (sum(ticks) / TICKS_PER_SECOND) * 1e6;
}

/** Resident memory of the process and its descendants in MiB. Pages shared by several processes count in each. */
export function residentMiB(pid: number): number {
  const kib = processTree(pid).map((id) => Number(/VmRSS:\s+(\d+)/.exec(readProc(id, "status"))?.[1] ?? 0));
  return sum(kib) / 1024;
}

/** The process and its descendants. */
function processTree(pid: number): number[] {
  const children = taskIds(pid).flatMap((task) => readProc(pid, `task/${task}/children`).split(" ").filter(Boolean));
  return [pid, ...children.flatMap((child) => processTree(Number(child)))];
}

function taskIds(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** proc(5): the fields after the program's name, which is in parentheses and may hold anything; [11] = utime, [12] = stime. */
function statFields(pid: number): string[] {
  const text = readProc(pid, "stat");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended on its own.
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
