/** Characters; more than any trace event has: a body snapshot of 2 MiB takes 2.8 MiB in base64. */
const MAX_EVENT_LENGTH = 64 * 1024 * 1024;

/** The JSON text of an event, which may span lines, and the line at which it begins. */
export interface TraceText {
  readonly raw: string;
  readonly line: number;
}

/**
 * Splits the text of a trace into the JSON texts of its events. Reads server-sent events (`data:` lines, several joined by
 * a line feed, and an `id:`, ended by a blank line; comments and other fields are skipped) and, for saved files, bare JSON lines.
 */
export class TraceTextParser {
  #rest = "";
  #data: string[] = [];
  #dataLength = 0;
  #id: string | undefined;
  #lastEventId: string | undefined;
  /** Complete lines so far. */
  #lines = 0;
  #dataLine = 0;

  /** The last `id:` that a blank line has followed; there may be one without an event. */
  get lastEventId(): string | undefined {
    return this.#lastEventId;
  }

  /**
   * Takes the next piece of text, cut anywhere, and returns the events it completed.
   * @throws Error when a line or an event exceeds 64 Mi characters
   */
  push(text: string): TraceText[] {
    const events: TraceText[] = [];
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
  end(): TraceText[] {
    const events: TraceText[] = [];
    this.#line(this.#rest, events);
    this.#rest = "";
    this.#flush(events);
    return events;
  }

  #line(line: string, events: TraceText[]): void {
    this.#lines++;
    if (line.startsWith("data:")) {
      if (this.#data.length === 0) this.#dataLine = this.#lines;
      const data = line.slice(line.startsWith("data: ") ? 6 : 5);
      this.#data.push(data);
      this.#dataLength += data.length;
    } else if (line.startsWith("id:")) {
      this.#id = line.slice(3).trim();
    } else if (line === "") {
      this.#flush(events);
    } else if (line.startsWith("{") && this.#data.length === 0) {
      events.push({ raw: line, line: this.#lines });
    }
  }

  #flush(events: TraceText[]): void {
    if (this.#data.length > 0) events.push({ raw: this.#data.join("\n"), line: this.#dataLine });
    this.#lastEventId = this.#id;
    this.#data = [];
    this.#dataLength = 0;
  }
}
