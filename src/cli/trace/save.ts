/** Writing trace files. */

import { writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Fields } from "../../base/fields.ts";
import { fileProblem } from "../../base/file-problem.ts";
import { startTimeOf } from "../../report/fields.ts";
import { traceFileText } from "../../report/trace-file.ts";
import { CliError } from "../runner/errors.ts";

/** A trace may hold what only its owner should read: bodies, and with `--reveal` secrets. */
const PRIVATE = 0o600;

/**
 * A file for a trace, opened before the trace begins, so that a path that cannot be written fails at once. Its old content stays until
 * `end`.
 */
export class TraceFile {
  readonly #path: string;
  readonly #file: FileHandle;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /** @throws CliError if the path cannot be written */
  static async open(path: string): Promise<TraceFile> {
    return new TraceFile(path, await open(path, "a", PRIVATE).catch(unwritable(path)));
  }

  /** Replaces the content with this trace, unless that has no event, and closes the file. @throws CliError */
  async end(events: readonly Fields[], revealed: boolean): Promise<void> {
    try {
      if (events.length === 0) return;
      await this.#file.truncate();
      await this.#file.writeFile(traceFileText(events, revealed));
    } catch (error) {
      unwritable(this.#path)(error);
    } finally {
      await this.#file.close();
    }
  }
}

/**
 * Saves a trace in the current folder, named by the time of its request, and returns the name of the new file: `trace-20260102-150405.jsonl`.
 * @throws CliError if it cannot be written
 */
export function saveNewFile(events: readonly Fields[], revealed: boolean): string {
  const stamp = startTimeOf(events).replace(/[-:]/g, "").replace("T", "-").slice(0, "20260102-150405".length);
  const text = traceFileText(events, revealed);
  for (let number = 1; ; number++) {
    const path = `${["trace", stamp, number === 1 ? "" : number].filter((part) => part !== "").join("-")}.jsonl`;
    try {
      writeFileSync(path, text, { flag: "wx", mode: PRIVATE });
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") unwritable(path)(error);
    }
  }
}

function unwritable(path: string): (error: unknown) => never {
  return (error) => {
    throw new CliError("failure", `cannot write the trace file ${path}: ${fileProblem(error)}`, { cause: error });
  };
}
