/** Locks between processes that share a folder, also over a network: files that are created exclusively and touched while they are held. */
import { randomUUID } from "node:crypto";
import { link, open, rename, rm, stat, utimes } from "node:fs/promises";
import { codeOf } from "../base/errors.ts";
import { makeFolderOf, readIfThere } from "./private-files.ts";

/** How often a holder touches its file. */
const TOUCH_MS = 5_000;
/** Milliseconds without a touch after which a lock counts as abandoned. Each process measures with its own clock, so clocks may differ. */
const STALE_MS = 30_000;

/** A lock that this process holds. */
interface HeldLock {
  /** Whether it is still held: a process that was suspended may have lost it. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

export class LockFiles {
  /** What was seen of locks of others, and since when it has looked like that. */
  readonly #seen = new Map<string, { readonly version: string; readonly since: number }>();
  readonly #now: () => number;

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Takes the lock; undefined while another process holds it. Rejects if the folder cannot be written. */
  async take(path: string): Promise<HeldLock | undefined> {
    await makeFolderOf(path);
    const holder = randomUUID();
    if (!(await create(path, holder))) {
      const stale = await this.#staleVersion(path);
      if (stale === undefined || !(await removeIf(path, stale, holder)) || !(await create(path, holder)))
        return undefined;
    }
    this.#seen.delete(path);
    const isHeld = async (): Promise<boolean> => (await readIfThere(path)) === holder;
    const touch = setInterval(() => void touchIf(path, isHeld), TOUCH_MS).unref();
    return {
      isHeld,
      async release() {
        clearInterval(touch);
        if (await isHeld()) await rm(path, { force: true });
      },
    };
  }

  /** The holder of a lock that has not been touched for STALE_MS; undefined while it may be in use. */
  async #staleVersion(path: string): Promise<string | undefined> {
    const holder = await readIfThere(path);
    const touched = await stat(path).catch(() => undefined);
    if (holder === undefined || touched === undefined) return undefined;
    const version = `${holder} ${touched.mtimeMs}`;
    const before = this.#seen.get(path);
    if (before?.version !== version) {
      this.#seen.set(path, { version, since: this.#now() });
      return undefined;
    }
    return this.#now() - before.since >= STALE_MS ? holder : undefined;
  }
}

/** False: there is such a file. */
async function create(path: string, holder: string): Promise<boolean> {
  try {
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(holder);
    } finally {
      await file.close();
    }
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/**
 * Removes an abandoned lock. If another process has replaced it in the meantime, puts that one back and returns false: by a link, which,
 * unlike a rename, does not overwrite the lock of a third process.
 */
async function removeIf(path: string, stale: string, me: string): Promise<boolean> {
  const aside = `${path}.${me}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return true;
    throw error;
  }
  const isStale = (await readIfThere(aside)) === stale;
  if (!isStale) await link(aside, path).catch(() => {});
  await rm(aside, { force: true });
  return isStale;
}

async function touchIf(path: string, isHeld: () => Promise<boolean>): Promise<void> {
  const now = new Date();
  try {
    if (await isHeld()) await utimes(path, now, now);
  } catch {
    // The next touch may succeed; if none does, another process takes over.
  }
}
