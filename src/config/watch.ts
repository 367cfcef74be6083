import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";
import { ABSENT, type Digests, DiskDigests, UNKNOWN } from "./parse/inputs.ts";

/** Files that stay the same for this long have been written: editors write in several steps. */
const QUIET_MS = 100;
/** A file that never comes to rest is read after this long. */
const MAX_WAIT_MS = 1000;
/** Where the system's notices do not reach (network file systems, some containers), a look this often does. */
const POLL_MS = 250;
/** A file that is away for a moment is about to come back: some programs remove a file before they write it again. */
const ABSENT_MS = 1000;

/**
 * Compares what was read from files with what is in them. It does not depend on notices of the system, which only make it
 * look earlier: whatever happened, a difference that stays is found. Does not keep the process alive.
 */
export class FileWatch {
  readonly #onChange: () => void;
  readonly #disk = new DiskDigests();
  readonly #poll: NodeJS.Timeout;
  #files: Digests = new Map();
  #folders = new Map<string, FSWatcher>();
  #timer: NodeJS.Timeout | undefined;
  /** What was there at the last look; undefined while nothing differs. */
  #seen: string | undefined;
  #differsSince = 0;
  readonly #absentSince = new Map<string, number>();
  #waiting = false;

  /** `onChange` is called once after each `follow`. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
    this.#poll = setInterval(() => this.#notice(), POLL_MS);
    this.#poll.unref();
  }

  /** These files were read: calls back as soon as something else is in one of them, or is there already. */
  follow(files: Digests): void {
    this.#files = files;
    this.#disk.keep(files);
    this.#absentSince.clear();
    this.#seen = undefined;
    this.#waiting = true;
    const kept = new Map<string, FSWatcher>();
    for (const folder of new Set(Array.from(files.keys(), (path) => dirname(path)))) {
      const watcher = this.#folders.get(folder) ?? this.#watchFolder(folder);
      if (watcher !== undefined) kept.set(folder, watcher);
    }
    for (const [folder, watcher] of this.#folders) if (!kept.has(folder)) watcher.close();
    this.#folders = kept;
    this.#notice();
  }

  /** What is in the files that are followed. */
  now(): Digests {
    return new Map(Array.from(this.#files.keys(), (path) => [path, this.#disk.of(path)]));
  }

  /** Whether anything else than this is on disk, or may be. */
  differs(files: Digests): boolean {
    return [...files].some(([path, read]) => read === UNKNOWN || this.#disk.of(path) !== read);
  }

  close(): void {
    this.#waiting = false;
    clearInterval(this.#poll);
    clearTimeout(this.#timer);
    for (const watcher of this.#folders.values()) watcher.close();
  }

  #notice(): void {
    // A look is due anyway.
    if (this.#timer === undefined && this.#waiting) this.#look();
  }

  #look(): void {
    this.#timer = undefined;
    if (!this.#waiting) return;
    const now = performance.now();
    const changed = this.#changed(now);
    if (changed === "") {
      this.#seen = undefined;
      return;
    }
    if (this.#seen === undefined) this.#differsSince = now;
    if (changed === this.#seen || now - this.#differsSince > MAX_WAIT_MS) {
      this.#waiting = false;
      this.#onChange();
      return;
    }
    this.#seen = changed;
    this.#timer = setTimeout(() => this.#look(), QUIET_MS).unref();
  }

  /** The files in which something else is now, with what that is. */
  #changed(now: number): string {
    let changed = "";
    for (const [path, read] of this.#files) {
      const there = this.#disk.of(path);
      if (there !== ABSENT) this.#absentSince.delete(path);
      // Unknown is not a difference yet: the next check may know.
      if (there === read || there === UNKNOWN || read === UNKNOWN) continue;
      if (there === ABSENT) {
        const since = this.#absentSince.get(path) ?? now;
        this.#absentSince.set(path, since);
        if (now - since < ABSENT_MS) continue;
      }
      changed += `${path} ${there}\n`;
    }
    return changed;
  }

  #watchFolder(folder: string): FSWatcher | undefined {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#notice());
      watcher.on("error", () => {
        watcher.close();
        // Watched again with the next reload; until then the regular look finds changes.
        this.#folders.delete(folder);
      });
      return watcher;
    } catch {
      // The regular look finds changes too, a little later.
      return undefined;
    }
  }
}
