/** A gateway that npm runs as a script: `npm start` in a checkout. */

/** Milliseconds between two looks at the parent process; the system reports nothing when it ends. */
const POLL_MS = 250;
/** Milliseconds within which a signal that comes again is the same one. */
const SAME_MS = 500;

/** Whether npm has started this process. */
export function isNpmScript(env: Readonly<Record<string, string | undefined>>): boolean {
  return env.npm_lifecycle_event !== undefined;
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
