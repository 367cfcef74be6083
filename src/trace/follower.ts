import type { Activation, Condition } from "../cel/index.ts";
import { compileFilter, compileWhere } from "./filter.ts";
import type { FollowerCounters } from "./follow-counters.ts";
import { type Outcome, type PostedEvent, type TraceOptions, Tracer, type TraceSink } from "./tracer.ts";

/** Chooses the requests to follow, in CEL; undefined: every request. */
export interface FollowFilter {
  /** Over the request as received. */
  readonly expression?: string | undefined;
  /** Over the outcome of the request, so its events are held until it ends. */
  readonly where?: string | undefined;
  /** Definitions of the functions that both may call. */
  readonly functions: string;
}

/** Events of one request, in their order, at least one. */
interface FollowedEvents {
  /** Its number among the followed requests of this thread, from 1. */
  readonly request: number;
  /** Characters of the JSON of each. */
  readonly lengths: readonly number[];
  /** The last of them is the last of the request. */
  readonly ended: boolean;
}

/** A message of a follower to the main thread. */
export interface FollowedBatch {
  /**
   * The JSON of all events, without anything between them. One text, because many small ones cost both threads more: to copy, and to collect. Its
   * length is what `FollowerCounters.send` got.
   */
  readonly text: string;
  /** What was dropped in front of it, because too much was on its way. */
  readonly lost?: LostEvents | undefined;
  readonly requests: readonly FollowedEvents[];
}

/** Events that a thread has dropped. */
export interface LostEvents {
  readonly events: number;
  /** Requests that began with one of them. */
  readonly begun: number;
  /** Those of all requests that had not ended by then. */
  readonly inProgress: readonly number[];
}

/** What is collected of one request for the next batch. */
interface Collected extends FollowedEvents {
  readonly lengths: number[];
  ended: boolean;
}

/** Milliseconds that events wait to be sent together, because each message wakes the main thread. Too short for a person to notice. */
const BATCH_MS = 20;
/** A batch with this many characters is sent at once. */
const BATCH_LENGTH = 256 * 1024;
/** Limits of what is held for `where`: characters of events, and requests. */
const MAX_HELD_LENGTH = 8 * 1024 * 1024;
const MAX_HELD_REQUESTS = 2000;

/**
 * One stream of followed requests, in one thread: takes the events of each request that the filter chooses. Over the limits of what is held,
 * a request keeps only its last event and the number of events dropped. While too much is on its way to the main thread, whole batches
 * are dropped, and the next one says so.
 */
export class Follower {
  readonly expression: Condition | undefined;
  readonly options: TraceOptions;
  readonly #where: Condition | undefined;
  readonly #counters: FollowerCounters;
  readonly #post: (batch: FollowedBatch) => void;
  #requests = 0;
  /** Requests whose events are sent as they happen. */
  readonly #inProgress = new Set<number>();
  #lost = { events: 0, begun: 0 };
  /** Requests that have begun since the last batch. */
  #begun = 0;
  #batch: Collected[] = [];
  #text = "";
  #timer: NodeJS.Timeout | undefined;
  #heldLength = 0;
  #heldRequests = 0;
  #closed = false;

  /** Does not throw: the filter was compiled before, when the user gave it. `post` carries events to the main thread. */
  constructor(
    filter: FollowFilter,
    options: TraceOptions,
    counters: FollowerCounters,
    post: (batch: FollowedBatch) => void,
  ) {
    this.expression = compileFilter(filter);
    this.options = { ...options, messages: true };
    this.#where = filter.where === undefined ? undefined : compileWhere(filter.where, filter.functions);
    this.#counters = counters;
    this.#post = post;
  }

  /** A sink for the events of one request, which began at `start` (`performance.now()`). */
  begin(start: number): TraceSink {
    const where = this.#where;
    if (where === undefined) {
      const request = this.#number();
      this.#inProgress.add(request);
      return new Tracer(this.options, start, (event) => {
        if (event === undefined) this.#end(request);
        else this.#send(request, [event.json]);
      });
    }
    const held = new Held(this.#heldRequests < MAX_HELD_REQUESTS);
    this.#heldRequests++;
    return new Tracer(this.options, start, (event, outcome) => {
      if (event === undefined) this.#decide(held, where, outcome);
      else if (!this.#closed) this.#hold(held, event);
    });
  }

  /** Nobody follows any more. Later events of requests in progress are dropped. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#batch = [];
    this.#text = "";
    this.#inProgress.clear();
  }

  #hold(held: Held, event: PostedEvent): void {
    const before = held.length;
    held.add(event);
    if (this.#heldLength - before + held.length > MAX_HELD_LENGTH) held.shed();
    this.#heldLength += held.length - before;
  }

  #decide(held: Held, where: Condition, outcome: Outcome | undefined): void {
    this.#heldRequests--;
    this.#heldLength -= held.length;
    const known: Activation | undefined = outcome?.();
    if (known === undefined || !where.matches(known, () => false)) return;
    const request = this.#number();
    this.#send(
      request,
      held.all().map(({ json }) => json),
    );
    this.#end(request);
  }

  /** The number of a request that begins for the reader. */
  #number(): number {
    this.#begun++;
    this.#counters.begun();
    return ++this.#requests;
  }

  #send(request: number, events: readonly string[]): void {
    if (this.#closed) return;
    this.#counters.produced(events.length);
    // Not after an event is added: its request may end with it.
    if (this.#text.length >= BATCH_LENGTH) this.flush();
    let last = this.#batch.at(-1);
    if (last?.request !== request) {
      last = { request, lengths: [], ended: false };
      this.#batch.push(last);
    }
    for (const json of events) {
      last.lengths.push(json.length);
      this.#text += json;
    }
    this.#timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  /** The event that was sent last was the last of the request: a tracer finishes in the same turn. */
  #end(request: number): void {
    const last = this.#batch.at(-1);
    if (last?.request === request) last.ended = true;
    this.#inProgress.delete(request);
  }

  /** Sends what is collected, if there is room for it. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#batch.length === 0 && this.#lost.events === 0) return;
    const [requests, text, begun] = [this.#batch, this.#text, this.#begun];
    this.#batch = [];
    this.#text = "";
    this.#begun = 0;
    const { events } = this.#lost;
    if (this.#counters.send(text.length)) {
      this.#post({ text, requests, ...(events > 0 && { lost: this.#takeLost(requests, begun) }) });
      return;
    }
    this.#lost.begun += begun;
    for (const each of requests) this.#lost.events += each.lengths.length;
    // Also if no further event comes.
    this.#timer = setTimeout(() => this.flush(), BATCH_MS);
  }

  /** What was lost in front of a batch with these requests, of which the last `begun` have begun in it. */
  #takeLost(requests: readonly FollowedEvents[], begun: number): LostEvents {
    const lost = this.#lost;
    this.#lost = { events: 0, begun: 0 };
    // Those that end in the batch had not ended in front of it.
    const later = new Set([...this.#inProgress, ...requests.map(({ request }) => request)]);
    return { ...lost, inProgress: [...later].filter((request) => request <= this.#requests - begun) };
  }
}

/** The events of a request whose outcome is not known yet. */
class Held {
  /** Characters. */
  length = 0;
  #events: PostedEvent[] = [];
  #dropped = 0;
  #whole: boolean;

  /** `whole`: all events, until `shed`; otherwise only the last. */
  constructor(whole: boolean) {
    this.#whole = whole;
  }

  add(event: PostedEvent): void {
    if (!this.#whole) this.#drop();
    this.#events.push(event);
    this.length += event.json.length;
  }

  /** Keeps only the last event from now on. */
  shed(): void {
    this.#whole = false;
    const last = this.#events.pop();
    this.#drop();
    if (last !== undefined) this.add(last);
  }

  #drop(): void {
    this.#dropped += this.#events.length;
    this.#events = [];
    this.length = 0;
  }

  /** The events that are kept; one with a count stands for those that were dropped. */
  all(): readonly PostedEvent[] {
    if (this.#dropped === 0) return this.#events;
    const end = this.#events[0]?.end ?? 0;
    const message = { type: "dropped", count: this.#dropped };
    return [
      { json: JSON.stringify({ eventStart: null, eventEnd: end, severity: "warn", message }), end },
      ...this.#events,
    ];
  }
}
