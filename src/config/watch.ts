import { type FSWatcher, watch } from "node:fs";
import { ABSENT, type Digests, DiskDigests, folderOf, UNKNOWN } from "./parse/inputs.ts";

/** Files that have not changed for this long are read: editors write in several steps. */
const QUIET_MS = 100;
/** A file that keeps changing is read after this long. */
const MAX_WAIT_MS = 1000;
/** How often to check without a notification, which network file systems and some containers do not deliver. */
const POLL_MS = 250;
/** Regular checks take at most this part of a processor: one of 1,000 files takes 7 ms. */
const POLL_SHARE = 1 / 200;
/** The same of checks that notifications cause. */
const NOTICED_SHARE = 1 / 20;
/** How long a file may be missing before that counts as a change: some programs remove a file before they write it again. */
const ABSENT_MS = 1000;

/**
 * Compares the content that was read from files with their present content. Notifications of the system only make it check
 * earlier, so a lasting difference is always found. Does not keep the process alive.
 */
export class FileWatch {
  readonly #onChange: () => void;
  readonly #disk = new DiskDigests();
  #files: Digests = new Map();
  #folders = new Map<string, FSWatcher>();
  /** The next check; there is one until a change has been reported. */
  #timer: NodeJS.Timeout | undefined;
  /** The next check comes as early as it may. */
  #soon = false;
  /** Milliseconds of the processor that the last check took, and when it ended. */
  #cost = 0;
  #checkedAt = 0;
  /** The different content at the last check, which stays once it has been reported; undefined while nothing differs. */
  #seen: string | undefined;
  #differsSince = 0;
  readonly #absentSince = new Map<string, number>();

  /** `onChange` is called once after each `follow`. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Watches files that were read: calls back once the content of one differs, which it may already do. */
  follow(files: Digests): void {
    this.#files = files;
    this.#disk.keep(files);
    this.#absentSince.clear();
    this.#seen = undefined;
    const kept = new Map<string, FSWatcher>();
    for (const folder of new Set(Array.from(files.keys(), folderOf))) {
      const watcher = this.#folders.get(folder) ?? this.#watchFolder(folder);
      if (watcher !== undefined) kept.set(folder, watcher);
    }
    for (const [folder, watcher] of this.#folders) if (!kept.has(folder)) watcher.close();
    this.#folders = kept;
    this.#checkAfter(0);
  }

  /** The present content of the watched files. */
  now(): Digests {
    return new Map(Array.from(this.#files.keys(), (path) => [path, this.#disk.of(path)]));
  }

  /** Whether the files on disk differ from these, or may differ. */
  differs(files: Digests): boolean {
    return [...files].some(([path, read]) => read === UNKNOWN || this.#disk.of(path) !== read);
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const watcher of this.#folders.values()) watcher.close();
  }

  #checkAfter(pause: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), pause).unref();
  }

  /** A watched folder has changed. Other files in it may be the reason: an ACME order writes to its folder many times. */
  #notice(): void {
    if (this.#soon || this.#seen !== undefined) return;
    this.#soon = true;
    this.#checkAfter(pauseOnceNoticed(this.#cost, performance.now() - this.#checkedAt));
  }

  #check(): void {
    const before = process.threadCpuUsage();
    const now = performance.now();
    const changed = this.#changed(now);
    const { user, system } = process.threadCpuUsage(before);
    this.#cost = (user + system) / 1000;
    this.#checkedAt = performance.now();
    this.#soon = false;
    if (changed === "") {
      this.#seen = undefined;
      this.#checkAfter(pauseAfter(this.#cost));
      return;
    }
    if (this.#seen === undefined) this.#differsSince = now;
    if (changed === this.#seen || now - this.#differsSince > MAX_WAIT_MS) {
      this.#onChange();
      return;
    }
    this.#seen = changed;
    this.#checkAfter(QUIET_MS);
  }

  /** The files whose content differs, with their present content. */
  #changed(now: number): string {
    let changed = "";
    for (const [path, read] of this.#files) {
      const there = this.#disk.of(path);
      const isGone = there === ABSENT || (path.endsWith("/") && this.#misses(path));
      if (!isGone) this.#absentSince.delete(path);
      // Unknown is not a difference yet: the next check may know.
      if (there === read || there === UNKNOWN || read === UNKNOWN) continue;
      if (isGone) {
        const since = this.#absentSince.get(path) ?? now;
        this.#absentSince.set(path, since);
        if (now - since < ABSENT_MS) continue;
      }
      changed += `${path} ${there}\n`;
    }
    return changed;
  }

  /** Whether a file that was read from this folder is missing. */
  #misses(folder: string): boolean {
    return [...this.#files.keys()].some((path) => folderOf(path) === folder && this.#disk.of(path) === ABSENT);
  }

  #watchFolder(folder: string): FSWatcher | undefined {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#notice());
      watcher.on("error", () => {
        watcher.close();
        // Watched again after the next reload; until then the regular check finds changes.
        this.#folders.delete(folder);
      });
      return watcher;
    } catch {
      // The regular check finds changes too, a little later.
      return undefined;
    }
  }
}

/** Milliseconds until the next regular check, after one that has taken `cost` milliseconds of the processor. */
export function pauseAfter(cost: number): number {
  return Math.max(POLL_MS, cost / POLL_SHARE);
}

/** Milliseconds until the check after a notification, `since` milliseconds after a check that has taken `cost`. */
export function pauseOnceNoticed(cost: number, since: number): number {
  return Math.max(0, cost / NOTICED_SHARE - since);
}
