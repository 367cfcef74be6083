import { type FSWatcher, realpathSync, statSync, watch } from "node:fs";
import { dirname } from "node:path";

/** Changes this close together are one change: editors write in several steps. */
const DEBOUNCE_MS = 100;
/** Where the system's notices do not reach (network file systems, some containers), a look this often does. */
const POLL_MS = 250;

/** Standard input and open file descriptors are read once. */
export function isReadOnce(path: string): boolean {
  return path === "-" || path === "/dev/stdin" || /^\/(dev|proc\/self)\/fd/.test(path);
}

/**
 * Calls back after any of the files has changed: written in place, replaced by a rename, removed and made again, or
 * swapped through a symbolic link as Kubernetes does with mounted ConfigMaps. Does not keep the process alive.
 */
export function watchFiles(paths: readonly string[], onChange: () => void): { close(): void } {
  const watchers: FSWatcher[] = [];
  let seen = fingerprint(paths);
  let timer: NodeJS.Timeout | undefined;

  const look = (): void => {
    const now = fingerprint(paths);
    if (now === seen) return;
    seen = now;
    clearTimeout(timer);
    timer = setTimeout(() => {
      // A file that is away for a moment is about to come back.
      if (!seen.includes(ABSENT)) onChange();
    }, DEBOUNCE_MS);
  };
  for (const folder of new Set(paths.map((path) => dirname(path)))) {
    try {
      const watcher = watch(folder, { persistent: false }, look);
      watcher.on("error", () => watcher.close());
      watchers.push(watcher);
    } catch {
      // The look below finds the change too, a little later.
    }
  }
  const poll = setInterval(look, POLL_MS);
  poll.unref();
  return {
    close() {
      clearInterval(poll);
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}

const ABSENT = "absent";

/** Changes whenever the content of a file may have changed. */
function fingerprint(paths: readonly string[]): string {
  return paths
    .map((path) => {
      try {
        const real = realpathSync(path);
        const { ino, size, mtimeMs, ctimeMs } = statSync(real);
        return `${real} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
      } catch {
        return ABSENT;
      }
    })
    .join("\n");
}
