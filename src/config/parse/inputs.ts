/**
 * The files that a configuration was read from, and whether they have changed since. The loader reports a digest of exactly the
 * bytes that it parsed, so a write between reading and watching is noticed by comparison, without a notification.
 */
import { createHash } from "node:crypto";
import { closeSync, openSync, readdirSync, readFileSync, readSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { fileProblem } from "../../base/file-problem.ts";

/**
 * Each file by its path with a digest of its content, or with the reason why it has none. A path that ends in a slash is a folder of
 * configuration files, and its content is their names.
 */
export type Digests = ReadonlyMap<string, string>;

/** The inputs of one load. */
export interface Inputs {
  /** The configuration and the files that it names, also those that could not be read. */
  readonly files: Digests;
  /** SHA-256 of the configuration's text followed by the content of each file that it names, in hex. */
  readonly hash: string;
}

/** There is no such file. */
export const ABSENT = "absent";
/** The content is unknown at present, for example because the process has run out of file descriptors. */
export const UNKNOWN = "unknown";
/** A pipe or a device: its content can be read only once. */
const SPECIAL = "special";

/** A file whose last change is older than this does not change again without another time stamp. */
const SETTLED_MS = 2000;
/** Contents are compared this often even if size and times are the same: file systems may keep old ones in a cache. */
const CONTENT_MS = 60_000;

/** Standard input and open file descriptors are read once. */
export function isReadOnce(path: string): boolean {
  return path === "-" || path === "/dev/stdin" || /^\/(dev|proc\/self)\/fd/.test(path);
}

/** The folder of an input, with a slash at the end; that of a folder is the folder itself. */
export function folderOf(path: string): string {
  return path.endsWith("/") ? path : `${dirname(path)}/`;
}

/** Configuration files in a folder; hidden files and backups of editors, such as `a.yaml~` and `.a.yaml.swp`, are none. */
const CONFIG_NAME = /^[^.].*\.(?:ya?ml|json)$/;

/** Reads the files of one load, each once, and remembers what was in them. */
export class InputReader {
  readonly #files = new Map<string, string>();
  readonly #contents = new Map<string, () => Buffer>();
  readonly #hash = createHash("sha256");

  /** Adds a text that is in no file. */
  addText(text: string): void {
    this.#hash.update(text);
  }

  /** The text of a file. Throws an Error whose message is the reason why it cannot be read, in words. */
  readText(path: string): string {
    return toText(this.readBytes(path));
  }

  /** As `readText`, for binary content. */
  readBytes(path: string): Buffer {
    return this.#contentOf(path)();
  }

  /** Whether there is such a file. One that is missing is an input too: its appearance changes what is read. */
  exists(path: string): boolean {
    this.#contentOf(path);
    return this.#files.get(path) !== ABSENT;
  }

  /**
   * Names of the configuration files in a folder, in byte order; undefined if the path is not that of a folder. The listing is an input: a
   * file that appears or goes changes what is read. Throws as `readText` does.
   */
  names(path: string): readonly string[] | undefined {
    if (isReadOnce(path) || statOf(path).stats?.isDirectory() !== true) return undefined;
    const { names, digest, error } = listFolder(path);
    this.#files.set(path.endsWith("/") ? path : `${path}/`, digest);
    if (names === undefined) throw error;
    return names;
  }

  get inputs(): Inputs {
    return { files: new Map(this.#files), hash: this.#hash.copy().digest("hex") };
  }

  #contentOf(path: string): () => Buffer {
    const known = this.#contents.get(path) ?? this.#read(path);
    this.#contents.set(path, known);
    return known;
  }

  #read(path: string): () => Buffer {
    const { digest, bytes, error } = readInput(path);
    if (!isReadOnce(path)) this.#files.set(path, digest);
    if (bytes === undefined)
      return () => {
        throw error;
      };
    this.#hash.update(bytes);
    return () => bytes;
  }
}

interface InputVersion {
  readonly fingerprint: string;
  readonly digest: string;
  /** Milliseconds since 1970. */
  readonly readAt: number;
  readonly settled: boolean;
}

/** Digests of files; reads only those whose size, times or inode have changed since the last check. */
export class DiskDigests {
  readonly #known = new Map<string, InputVersion>();
  readonly #now: () => number;
  readonly #stat: (path: string) => Stats;

  /** Tests bring a clock, in milliseconds since 1970, and time stamps of their own. */
  constructor(now = Date.now, stat: (path: string) => Stats = statSync) {
    this.#now = now;
    this.#stat = stat;
  }

  /** The digest of the file's content; ABSENT, UNKNOWN or another reason if it cannot be read. */
  of(path: string): string {
    const now = this.#now();
    const { stats, digest: failure } = statOf(path, this.#stat);
    if (stats === undefined) return failure;
    const fingerprint = `${realPathOf(path)} ${stats.dev} ${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
    const known = this.#known.get(path);
    if (known?.fingerprint === fingerprint && known.settled && now - known.readAt < CONTENT_MS) return known.digest;
    // Pipes and devices are not read, because that would take the content from another reader.
    const digest = digestFrom(path, stats);
    // Within one tick of the clock a file can change twice and look the same.
    const settled = Math.abs(now - Math.max(stats.mtimeMs, stats.ctimeMs)) > SETTLED_MS;
    if (digest !== UNKNOWN) this.#known.set(path, { fingerprint, digest, readAt: now, settled });
    return digest;
  }

  /** Forgets all other files. */
  keep(paths: ReadonlyMap<string, unknown>): void {
    for (const path of this.#known.keys()) if (!paths.has(path)) this.#known.delete(path);
  }
}

interface Read {
  readonly digest: string;
  readonly bytes?: Buffer;
  readonly error?: Error;
}

function readInput(path: string): Read {
  const { stats } = statOf(path);
  if (stats?.isFile() === true && stats.size > MAX_BYTES)
    return {
      digest: `large: ${stats.ino} ${stats.size} ${stats.mtimeMs}`,
      error: new Error(`it has more than ${MAX_BYTES / 1024 / 1024} MiB`),
    };
  const read = contentOf(path);
  // A folder cannot be read at all.
  return stats === undefined || stats.isFile() || read.bytes === undefined ? read : { ...read, digest: SPECIAL };
}

interface Listing {
  readonly digest: string;
  readonly names?: readonly string[];
  readonly error?: Error;
}

function listFolder(path: string): Listing {
  try {
    const names = readdirSync(path).filter((name) => CONFIG_NAME.test(name));
    names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    return { digest: `files: ${names.join("/")}`, names };
  } catch (cause) {
    return { digest: reasonOf(cause), error: new Error(fileProblem(cause), { cause }) };
  }
}

function digestFrom(path: string, stats: Stats): string {
  if (path.endsWith("/")) return listFolder(path).digest;
  if (stats.isFile() && stats.size <= MAX_BYTES) return digestOf(path);
  return stats.isFile() || stats.isDirectory() ? readInput(path).digest : SPECIAL;
}

/** Reused, because a watch checks often and each buffer would stay until the next garbage collection. */
const CHUNK = Buffer.allocUnsafeSlow(64 * 1024);

/** The digest of a file whose content is not needed. */
function digestOf(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const content = createHash("sha256");
      for (let size = readSync(file, CHUNK); size > 0; size = readSync(file, CHUNK))
        content.update(CHUNK.subarray(0, size));
      return content.digest("hex");
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return reasonOf(error);
  }
}

function contentOf(path: string): Read {
  try {
    const bytes = readBytes(path);
    return { digest: createHash("sha256").update(bytes).digest("hex"), bytes };
  } catch (error) {
    const known = error instanceof Error ? error : new Error(String(error));
    return { digest: reasonOf(known.cause), error: known };
  }
}

function statOf(
  path: string,
  stat: (path: string) => Stats = statSync,
): { readonly stats?: Stats; readonly digest: string } {
  try {
    return { stats: stat(path), digest: "" };
  } catch (error) {
    return { digest: reasonOf(error) };
  }
}

/** Where symbolic links lead; undefined if the file has just gone, which the next check finds. */
function realPathOf(path: string): string | undefined {
  try {
    // Native: a watch of 1,000 files takes 6 ms of CPU for it instead of 12 to 20.
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

/** A reason in the file itself counts as its content; with any other reason the content is unknown. */
function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? "";
  if (code === "ENOENT" || code === "ENOTDIR") return ABSENT;
  return ["EACCES", "EPERM", "EISDIR", "ELOOP", "ENAMETOOLONG"].includes(code) ? `unreadable: ${code}` : UNKNOWN;
}

/** Rejects implausibly large files. */
const MAX_BYTES = 64 * 1024 * 1024;

/** A whole file of text; `-` is standard input. Throws an Error whose message is the reason why it cannot be read, in words. */
export function readText(path: string): string {
  return toText(readBytes(path));
}

/** A whole file; throws as `readText` does, with the system's error as its cause. */
function readBytes(path: string): Buffer {
  try {
    return readFileSync(path === "-" ? 0 : path);
  } catch (cause) {
    throw new Error(fileProblem(cause), { cause });
  }
}

/** Throws as `readText` does. */
function toText(bytes: Uint8Array): string {
  if (bytes.length > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES / 1024 / 1024} MiB`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error("it is not UTF-8 text");
  }
}
