/** Characters of events that a stream keeps, for a reader that is slow or has to connect again. */
const MAX_LENGTH = 4 * 1024 * 1024;
/** Removed entries that the array may hold before it is shortened: an array that shifts with each event copies itself each time. */
const MAX_REMOVED = 1024;

/** A place between two events of a stream. */
export interface Position {
  /** Events before it. */
  readonly event: number;
  /** Requests whose last event is before it. */
  readonly ended: number;
  /** Requests whose first event is before it: those with numbers up to this one. */
  readonly begun: number;
}

const BEGINNING: Position = { event: 0, ended: 0, begun: 0 };

/** What an event says about the requests of its stream. */
interface Added {
  /** The requests that end with it, by number. */
  readonly ended: readonly number[];
  /** The highest number of a request so far. */
  readonly begun: number;
  /** How many events it stands for, if it says that others are missing. */
  readonly events?: number | undefined;
}

/** What follows a position. */
export interface Passage {
  readonly missing: {
    /** Events at the beginning that are not kept any more. */
    readonly events: number;
    /** How many requests ended with them. */
    readonly ended: number;
    /** Those of these requests that had begun before the position. */
    readonly endedOf: readonly number[];
  };
  /** In front of `events`. */
  readonly start: Position;
  /** Each with the position behind it. */
  readonly events: readonly { readonly json: string; readonly position: Position }[];
  /** Behind the last of `events`. */
  readonly end: Position;
}

type Entry = Passage["events"][number];

/**
 * The last events of a stream. A reader is a position in it: one that falls behind what is kept, or comes back too late, learns exactly how
 * much it has missed.
 */
export class FollowLog {
  readonly #maxLength: number;
  readonly #entries: Entry[] = [];
  /** Entries at the beginning that have been removed. */
  #removed = 0;
  #length = 0;
  #start: Position = BEGINNING;
  #end: Position = BEGINNING;
  /** The numbers of all requests that have ended, in this order, whether their events are kept or not: 8 MB for the million that a stream can have. */
  readonly #ended: number[] = [];

  constructor(maxLength = MAX_LENGTH) {
    this.#maxLength = maxLength;
  }

  /** Behind the last event. */
  get end(): Position {
    return this.#end;
  }

  /** Adds an event. The oldest ones make room for it. */
  add(json: string, { ended, begun, events = 1 }: Added): void {
    // Not as arguments of one call: they may be too many for the stack.
    for (const request of ended) this.#ended.push(request);
    this.#end = { event: this.#end.event + events, ended: this.#ended.length, begun };
    this.#entries.push({ json, position: this.#end });
    this.#length += json.length;
    while (this.#length > this.#maxLength && this.#entries.length - this.#removed > 1) this.#removeFirst();
  }

  /** Whether the stream has been at this position. What is not kept any more, it believes. */
  has({ event, ended, begun }: Position): boolean {
    if (event < this.#start.event) return ended <= this.#start.ended && begun <= this.#start.begun;
    const known = event === this.#start.event ? this.#start : this.#entries[this.#indexAfter(event) - 1]?.position;
    return known?.event === event && known.ended === ended && known.begun === begun;
  }

  /** What follows `position`, up to about `maxLength` characters. */
  after(position: Position, maxLength: number): Passage {
    const start = position.event < this.#start.event ? this.#start : position;
    const ended = this.#ended.slice(position.ended, start.ended);
    const endedOf = ended.filter((request) => request <= position.begun);
    const missing = { events: start.event - position.event, ended: ended.length, endedOf };
    const events: Entry[] = [];
    let length = 0;
    for (let index = this.#indexAfter(start.event); length < maxLength; index++) {
      const entry = this.#entries[index];
      if (entry === undefined) break;
      events.push(entry);
      length += entry.json.length;
    }
    return { missing, start, events, end: events.at(-1)?.position ?? start };
  }

  /** The index of the first entry behind this event. */
  #indexAfter(event: number): number {
    let low = this.#removed;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle]?.position.event ?? 0) > event) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #removeFirst(): void {
    const first = this.#entries[this.#removed];
    if (first === undefined) return;
    this.#length -= first.json.length;
    this.#start = first.position;
    this.#removed++;
    if (this.#removed < MAX_REMOVED) return;
    this.#entries.splice(0, this.#removed);
    this.#removed = 0;
  }
}
