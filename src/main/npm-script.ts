/** A gateway that npm runs as a script: `npm start` in a checkout. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

type Env = Readonly<Record<string, string | undefined>>;

/** Milliseconds between two looks at the parent process; the system reports nothing when it ends. */
const POLL_MS = 250;
/** Milliseconds within which a repeated signal counts as the same one. */
const SAME_MS = 500;

/**
 * Whether the parent process `parent` is npm. The environment alone does not show this: every process below an npm script inherits it, even
 * a gateway that a shell or a test starts.
 */
export function isNpmScript(env: Env, parent = process.ppid): boolean {
  if (env.npm_lifecycle_event === undefined) return false;
  const command = commandOf(parent);
  // npm sets its process title to "npm start"; npm_execpath is the program of npm, pnpm or yarn.
  return (
    /^npm\b/.test(command) || (env.npm_execpath !== undefined && command.split(/[\0 ]/).includes(env.npm_execpath))
  );
}

/** The command line of a process; empty if it cannot be read. Linux has a file for it, and container images often lack `ps`. */
function commandOf(pid: number): string {
  try {
    return process.platform === "linux"
      ? readFileSync(`/proc/${pid}/cmdline`, "utf8")
      : execFileSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" });
  } catch {
    return "";
  }
}

/** Calls back once if npm, the parent process, ends without passing on a signal, for example by SIGKILL. */
export function onParentGone(callback: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    callback();
  }, POLL_MS).unref();
}

/**
 * A signal handler that counts Ctrl-C once: the terminal sends it to npm and to this process, and npm passes its own signal on.
 */
export function onceEach<S>(handle: (signal: S) => void): (signal: S) => void {
  const seen = new Map<S, number>();
  return (signal) => {
    const before = seen.get(signal);
    const now = performance.now();
    seen.set(signal, before ?? now);
    if (before === undefined || now - before > SAME_MS) handle(signal);
  };
}
