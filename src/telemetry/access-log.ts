import { Logger, type LogOutput } from "../base/log.ts";
import { mostBytes, writeAccessLine } from "./access-line.ts";
import type { AccessRecord } from "./access-record.ts";

/** Where the next line is written. */
export interface LineBuffer {
  /** A buffer with room for a line of at most `most` bytes from `at` on. */
  room(most: number): Buffer;
  readonly at: number;
  /** A line ends before `end`; its last byte is its line break. */
  commit(end: number): void;
}

/** The access log of one thread: one line for each request or connection, and others about those that were rejected. */
export class AccessLog extends Logger {
  readonly #lines: LineBuffer;

  /** `lines` go where those of `output` go. */
  constructor(output: LogOutput, lines: LineBuffer) {
    super("request", output);
    this.#lines = lines;
  }

  /** Writes the line of a record, whatever the level: see `enabled`. */
  write(record: AccessRecord): void {
    const lines = this.#lines;
    const bytes = lines.room(mostBytes(record));
    lines.commit(writeAccessLine(record, this.output.format, bytes, lines.at));
  }
}
