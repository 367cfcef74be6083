import { closeSync, constants, fstatSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { fileProblem } from "../base/file-problem.ts";
import { linesIn } from "../base/lines.ts";
import type { Logger } from "../base/log.ts";
import type { LogFileSettings } from "../telemetry/settings.ts";

/** How often the path is compared with the open file, and what has failed is tried again. */
const CHECK_MS = 1000;
const LINE_FEED = 0x0a;
const MODE = 0o640;
/** A FIFO without a reader must not hold up the gateway; it is refused. */
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOCTTY;

/** What is wrong, and since when lines are missing. */
interface Failure {
  readonly reason: string;
  lines: number;
}

/**
 * The file of the access log. Nothing that is wrong with it stops or slows down traffic: lines that cannot be written are dropped, counted
 * and reported, once when it begins and once when it is over. The open file is compared with its path (level, not edge), so that moving or
 * removing the file, as logrotate does, needs no signal.
 */
export class LogFile {
  readonly #settings: LogFileSettings;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #open: { readonly fd: number; readonly dev: number; readonly ino: number; size: number } | undefined;
  #failure: Failure | undefined;
  /** The last line was written in part. */
  #torn = false;
  /** Rotation has failed and waits for the next check. */
  #keepsSize = false;
  readonly #onLost: (lines: number) => void;

  /** `onLost` counts lines that could not be written. */
  constructor(settings: LogFileSettings, log: Logger, onLost: (lines: number) => void) {
    this.#settings = settings;
    this.#log = log;
    this.#onLost = onLost;
    this.#openFile();
    this.#timer = setInterval(() => this.#check(), CHECK_MS).unref();
  }

  /** Whole lines with their line breaks. */
  write(lines: Uint8Array): void {
    const { maxSize } = this.#settings;
    const size = this.#open?.size ?? 0;
    if (maxSize !== undefined && size > 0 && size + lines.length > maxSize && !this.#keepsSize) this.#rotate();
    if (this.#open === undefined) this.#lose(lines);
    else this.#append(this.#torn ? Buffer.concat([Buffer.of(LINE_FEED), lines]) : lines);
  }

  /** Opens the path again, for example because the file has been moved. */
  reopen(): void {
    this.#close();
    this.#openFile();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#close();
  }

  #append(bytes: Uint8Array): void {
    const open = this.#open;
    if (open === undefined) return;
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(open.fd, bytes, written);
      this.#recovered();
    } catch (error) {
      this.#failed(fileProblem(error));
      this.#lose(bytes.subarray(written));
    }
    open.size += written;
    if (written > 0) this.#torn = bytes[written - 1] !== LINE_FEED;
  }

  #openFile(): void {
    const { file } = this.#settings;
    this.#torn = false;
    try {
      const fd = openSync(file, FLAGS, MODE);
      const stats = fstatSync(fd);
      if (!stats.isFile()) {
        closeSync(fd);
        throw new Error("it is not a regular file; leave config.logging.output out for standard output");
      }
      this.#open = { fd, dev: stats.dev, ino: stats.ino, size: stats.size };
    } catch (error) {
      this.#failed(fileProblem(error));
    }
  }

  #close(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    try {
      closeSync(open.fd);
    } catch {
      // A network file system reports a write that failed here; nothing can be done about it.
    }
  }

  #check(): void {
    this.#keepsSize = false;
    if (this.#open === undefined) {
      this.#openFile();
      if (this.#open !== undefined) this.#recovered();
    } else if (this.#settings.reopen && !this.#isAtPath()) this.reopen();
  }

  /** Whether the path is still that of the open file. */
  #isAtPath(): boolean {
    try {
      const { dev, ino } = statSync(this.#settings.file);
      return dev === this.#open?.dev && ino === this.#open.ino;
    } catch {
      return false;
    }
  }

  /** `file` becomes `file.1`, `file.1` becomes `file.2` and so on; the oldest goes. */
  #rotate(): void {
    const { file, keep } = this.#settings;
    // Another process that writes the same file may have rotated it.
    if (!this.#isAtPath()) {
      this.reopen();
      return;
    }
    try {
      rmSync(keep === 0 ? file : `${file}.${keep}`, { force: true });
      for (let number = keep - 1; number >= 0; number--)
        moveIfThere(number === 0 ? file : `${file}.${number}`, `${file}.${number + 1}`);
      this.reopen();
    } catch (error) {
      // It grows until the next attempt.
      this.#keepsSize = true;
      this.#log.warn("cannot rotate the access log", { file, error: fileProblem(error) });
    }
  }

  #failed(reason: string): void {
    if (this.#failure?.reason === reason) return;
    const { file } = this.#settings;
    this.#log.error("cannot write the access log; its lines are dropped until it can be written", {
      file,
      error: reason,
    });
    this.#failure = { reason, lines: this.#failure?.lines ?? 0 };
  }

  #recovered(): void {
    if (this.#failure === undefined) return;
    this.#log.warn("the access log is written again", { file: this.#settings.file, dropped: this.#failure.lines });
    this.#failure = undefined;
  }

  #lose(bytes: Uint8Array): void {
    const lines = linesIn(bytes);
    this.#onLost(lines);
    if (this.#failure !== undefined) this.#failure.lines += lines;
  }
}

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
