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
}

/** What follows a position. */
export interface Passage {
  /** Events at the beginning that are not kept any more, and how many of them were the last of their request. */
  readonly missing: { readonly events: number; readonly ended: number };
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
  #start: Position = { event: 0, ended: 0 };
  #end: Position = { event: 0, ended: 0 };

  constructor(maxLength = MAX_LENGTH) {
    this.#maxLength = maxLength;
  }

  /** Behind the last event. */
  get end(): Position {
    return this.#end;
  }

  /**
   * Adds an event, with which so many requests end. The oldest ones make room for it. `events`: how many it stands for, if it says that others
   * are missing.
   */
  add(json: string, ended: number, events = 1): void {
    this.#end = { event: this.#end.event + events, ended: this.#end.ended + ended };
    this.#entries.push({ json, position: this.#end });
    this.#length += json.length;
    while (this.#length > this.#maxLength && this.#entries.length - this.#removed > 1) this.#removeFirst();
  }

  /** Whether the stream has been at this position. What is not kept any more, it believes. */
  has({ event, ended }: Position): boolean {
    if (event < this.#start.event) return ended <= this.#start.ended;
    const known = event === this.#start.event ? this.#start : this.#entries[this.#indexAfter(event) - 1]?.position;
    return known?.event === event && known.ended === ended;
  }

  /** What follows `position`, up to about `maxLength` characters. */
  after(position: Position, maxLength: number): Passage {
    const start = position.event < this.#start.event ? this.#start : position;
    const missing = { events: start.event - position.event, ended: start.ended - position.ended };
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
