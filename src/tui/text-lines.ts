import { milliseconds } from "./duration.ts";
import type { Fields } from "./fields.ts";
import { problemRow, type Row, rowOf } from "./rows.ts";
import { LABEL_WIDTH } from "./summaries.ts";
import { verdictLine, verdictOf } from "./verdict.ts";

/** A trace as plain lines, for pipes, logs and terminals without a full-screen view. */
export class TextLines {
  readonly #rows: Row[] = [];

  /** The line of an event: milliseconds since the start, severity, type and summary. */
  event(event: Fields): string {
    return this.#line(rowOf(event, this.#rows.at(-1)));
  }

  /** The line of something that went wrong on the way. */
  problem(text: string): string {
    return this.#line(problemRow(text, this.#rows.at(-1)));
  }

  /** The last line: the request, how it ended, and what decided. Empty without events. */
  end(): string {
    return this.#rows.length === 0 ? "" : `${verdictLine(verdictOf(this.#rows))}\n`;
  }

  #line(row: Row): string {
    this.#rows.push(row);
    const severity = row.severity === "info" ? "" : row.severity;
    const columns = [
      milliseconds(row.end).padStart(10),
      severity.padEnd(7),
      row.label.padEnd(LABEL_WIDTH),
      row.summary,
    ];
    return `${columns.join("  ").trimEnd()}\n`;
  }
}
