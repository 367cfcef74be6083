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

  /** Adds an event; `last`: of its request. The oldest ones make room for it. */
  add(json: string, last: boolean): void {
    const { event, ended } = this.#end;
    this.#end = { event: event + 1, ended: last ? ended + 1 : ended };
    this.#entries.push({ json, position: this.#end });
    this.#length += json.length;
    while (this.#length > this.#maxLength && this.#entries.length - this.#removed > 1) this.#removeFirst();
  }

  /** Whether the stream has been at this position. The number of requests is the reader's word. */
  has({ event, ended }: Position): boolean {
    if (event > this.#end.event || ended > this.#end.ended) return false;
    if (event < this.#start.event) return ended <= this.#start.ended;
    return (event === this.#start.event ? this.#start : this.#entry(event).position).ended === ended;
  }

  /** What follows `position`, up to about `maxLength` characters. */
  after(position: Position, maxLength: number): Passage {
    const from = position.event < this.#start.event ? this.#start : position;
    const missing = { events: from.event - position.event, ended: from.ended - position.ended };
    const events: Entry[] = [];
    let length = 0;
    let end = from;
    while (end.event < this.#end.event && length < maxLength) {
      const entry = this.#entry(end.event + 1);
      events.push(entry);
      length += entry.json.length;
      end = entry.position;
    }
    return { missing, start: from, events, end };
  }

  /** The event with this number. */
  #entry(event: number): Entry {
    const entry = this.#entries[this.#removed + event - this.#start.event - 1];
    if (entry === undefined) throw new Error(`event ${event} of the stream is not kept`);
    return entry;
  }

  #removeFirst(): void {
    const { json, position } = this.#entry(this.#start.event + 1);
    this.#length -= json.length;
    this.#start = position;
    this.#removed++;
    if (this.#removed < MAX_REMOVED) return;
    this.#entries.splice(0, this.#removed);
    this.#removed = 0;
  }
}
