/** Characters; more than any trace event has: a body snapshot of 2 MiB takes 2.8 MiB in base64. */
const MAX_EVENT_LENGTH = 64 * 1024 * 1024;

/**
 * Splits the text of a trace into the JSON texts of its events. Reads server-sent events (`data:` lines, several joined by
 * a line feed, ended by a blank line; comments and other fields are skipped) and, for saved files, bare JSON lines.
 */
export class TraceTextParser {
  #rest = "";
  #data: string[] = [];
  #dataLength = 0;

  /**
   * Takes the next piece of text, cut anywhere, and returns the events it completed.
   * @throws Error when a line or an event exceeds 64 Mi characters
   */
  push(text: string): string[] {
    const events: string[] = [];
    const lines = text.split("\n");
    // A long event arrives in many pieces: only its last line is kept, and never split again.
    lines[0] = this.#rest + (lines[0] ?? "");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line.endsWith("\r") ? line.slice(0, -1) : line, events);
    if (this.#rest.length + this.#dataLength > MAX_EVENT_LENGTH)
      throw new Error(`a trace event is longer than ${MAX_EVENT_LENGTH} characters`);
    return events;
  }

  /** The text has ended: returns the events that no blank line or line end completed. */
  end(): string[] {
    const events: string[] = [];
    this.#line(this.#rest, events);
    this.#rest = "";
    this.#flush(events);
    return events;
  }

  #line(line: string, events: string[]): void {
    if (line.startsWith("data:")) {
      const data = line.slice(line.startsWith("data: ") ? 6 : 5);
      this.#data.push(data);
      this.#dataLength += data.length;
    } else if (line === "") {
      this.#flush(events);
    } else if (line.startsWith("{") && this.#data.length === 0) {
      events.push(line);
    }
  }

  #flush(events: string[]): void {
    if (this.#data.length > 0) events.push(this.#data.join("\n"));
    this.#data = [];
    this.#dataLength = 0;
  }
}
