import { type FSWatcher, realpathSync, statSync, watch } from "node:fs";
import { dirname } from "node:path";

/** Changes this close together are one change: editors write in several steps. */
const DEBOUNCE_MS = 100;
/** Where the system's notices do not reach (network file systems, some containers), a look this often does. */
const POLL_MS = 250;

/** A running watch. */
export interface FileWatch {
  /** Watches these files from now on. Of those that were watched before, no change in between is missed. */
  update(paths: readonly string[]): void;
  close(): void;
}

/** Standard input and open file descriptors are read once. */
export function isReadOnce(path: string): boolean {
  return path === "-" || path === "/dev/stdin" || /^\/(dev|proc\/self)\/fd/.test(path);
}

/**
 * Calls back after any of the files has changed: written in place, replaced by a rename, removed and made again, or
 * swapped through a symbolic link as Kubernetes does with mounted ConfigMaps. A file that goes away is no change until it
 * is back. Start it before the files are read, or a change during the reading is missed. Does not keep the process alive.
 */
export function watchFiles(paths: readonly string[], onChange: () => void): FileWatch {
  /** What the caller has been told of, or was there at the beginning. */
  let told = new Map<string, string>();
  let folders = new Map<string, FSWatcher>();
  let seen = "";
  let timer: NodeJS.Timeout | undefined;

  const look = (): void => {
    const now = [...told.keys()].map(fingerprint).join("\n");
    if (now === seen) return;
    seen = now;
    clearTimeout(timer);
    timer = setTimeout(tell, DEBOUNCE_MS).unref();
  };
  const tell = (): void => {
    const changed = [...told].flatMap(([path, before]) => {
      const now = fingerprint(path);
      // A file that is away for a moment is about to come back.
      return now === before || now === ABSENT ? [] : [[path, now] as const];
    });
    for (const [path, now] of changed) told.set(path, now);
    if (changed.length > 0) onChange();
  };
  const update = (files: readonly string[]): void => {
    told = new Map(files.map((path) => [path, told.get(path) ?? fingerprint(path)]));
    const kept = new Map<string, FSWatcher>();
    for (const folder of new Set(files.map((path) => dirname(path)))) {
      const watcher = folders.get(folder) ?? watchFolder(folder, look);
      if (watcher !== undefined) kept.set(folder, watcher);
    }
    for (const [folder, watcher] of folders) if (!kept.has(folder)) watcher.close();
    folders = kept;
    look();
  };

  update(paths);
  const poll = setInterval(look, POLL_MS);
  poll.unref();
  return {
    update,
    close() {
      clearInterval(poll);
      clearTimeout(timer);
      for (const watcher of folders.values()) watcher.close();
    },
  };
}

function watchFolder(folder: string, look: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, look);
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    // The regular look finds changes too, a little later.
    return undefined;
  }
}

const ABSENT = "absent";

/** Changes whenever the content of a file may have changed. */
function fingerprint(path: string): string {
  try {
    const real = realpathSync(path);
    const { ino, size, mtimeMs, ctimeMs } = statSync(real);
    return `${real} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch {
    return ABSENT;
  }
}
