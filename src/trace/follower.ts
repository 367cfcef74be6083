import type { Activation, Condition } from "../cel/index.ts";
import { compileFilter, compileWhere } from "./filter.ts";
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
export interface FollowedEvents {
  /** Its number among the followed requests of this thread, from 1. */
  readonly request: number;
  readonly events: readonly PostedEvent[];
  /** The last of them is the last of the request. */
  readonly ended: boolean;
}

/** What is collected of one request for the next batch. */
interface Collected extends FollowedEvents {
  readonly events: PostedEvent[];
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
 * a request keeps only its last event and the number of events dropped.
 */
export class Follower {
  readonly expression: Condition | undefined;
  readonly options: TraceOptions;
  readonly #where: Condition | undefined;
  readonly #post: (batch: readonly FollowedEvents[]) => void;
  #requests = 0;
  #batch: Collected[] = [];
  #batchLength = 0;
  #timer: NodeJS.Timeout | undefined;
  #heldLength = 0;
  #heldRequests = 0;
  #closed = false;

  /** Does not throw: the filter was compiled before, when the user gave it. `post` carries events to the main thread. */
  constructor(filter: FollowFilter, options: TraceOptions, post: (batch: readonly FollowedEvents[]) => void) {
    this.expression = compileFilter(filter);
    this.options = options;
    this.#where = filter.where === undefined ? undefined : compileWhere(filter.where, filter.functions);
    this.#post = post;
  }

  /** A sink for the events of one request, which began at `start` (`performance.now()`). */
  begin(start: number): TraceSink {
    const request = ++this.#requests;
    const where = this.#where;
    if (where === undefined)
      return new Tracer(this.options, start, (event) => {
        if (event === undefined) this.#end(request);
        else this.#send(request, [event]);
      });
    const held = new Held(this.#heldRequests < MAX_HELD_REQUESTS);
    this.#heldRequests++;
    return new Tracer(this.options, start, (event, outcome) => {
      if (event === undefined) this.#decide(request, held, where, outcome);
      else if (!this.#closed) this.#hold(held, event);
    });
  }

  /** Nobody follows any more. Later events of requests in progress are dropped. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#batch = [];
  }

  #hold(held: Held, event: PostedEvent): void {
    const before = held.length;
    held.add(event);
    if (this.#heldLength - before + held.length > MAX_HELD_LENGTH) held.shed();
    this.#heldLength += held.length - before;
  }

  #decide(request: number, held: Held, where: Condition, outcome: Outcome | undefined): void {
    this.#heldRequests--;
    this.#heldLength -= held.length;
    const known: Activation | undefined = outcome?.();
    if (known === undefined || !where.matches(known, () => false)) return;
    this.#send(request, held.all());
    this.#end(request);
  }

  #send(request: number, events: readonly PostedEvent[]): void {
    if (this.#closed) return;
    // Not after an event is added: its request may end with it.
    if (this.#batchLength >= BATCH_LENGTH) this.#flush();
    const last = this.#batch.at(-1);
    if (last?.request === request) last.events.push(...events);
    else this.#batch.push({ request, events: [...events], ended: false });
    for (const { json } of events) this.#batchLength += json.length;
    this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS);
  }

  /** The event that was sent last was the last of the request: a tracer finishes in the same turn. */
  #end(request: number): void {
    const last = this.#batch.at(-1);
    if (last?.request === request) last.ended = true;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#batch;
    this.#batch = [];
    this.#batchLength = 0;
    this.#post(batch);
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
