/** A gateway that npm runs as a script: `npm start` in a checkout. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

type Env = Readonly<Record<string, string | undefined>>;

/** Milliseconds between two looks at the parent process; the system reports nothing when it ends. */
const POLL_MS = 250;
/** Milliseconds within which a signal that comes again is the same one. */
const SAME_MS = 500;

/**
 * Whether the parent process `parent` is npm. The environment alone does not tell: whatever a script of npm starts inherits it, down to
 * a gateway that a shell or a test starts there.
 */
export function isNpmScript(env: Env, parent = process.ppid): boolean {
  if (env.npm_lifecycle_event === undefined) return false;
  const command = commandOf(parent);
  // npm takes "npm start" for its title; npm_execpath is the program of npm, pnpm or yarn.
  return (
    /^npm\b/.test(command) || (env.npm_execpath !== undefined && command.split(/[\0 ]/).includes(env.npm_execpath))
  );
}

/** The command line of a process; empty if it cannot be read. Linux has a file for it, and often no `ps` in an image. */
function commandOf(pid: number): string {
  try {
    return process.platform === "linux"
      ? readFileSync(`/proc/${pid}/cmdline`, "utf8")
      : execFileSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" });
  } catch {
    return "";
  }
}

/** Calls back once when npm, our parent, has ended without passing on a signal, as by SIGKILL. */
export function onParentGone(callback: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    callback();
  }, POLL_MS).unref();
}

/**
 * A handler of signals for which Ctrl-C counts once: the terminal sends it to npm and to this process, and npm passes on what it
 * gets.
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
