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

/** Events of one request, in their order. */
export interface FollowedEvents {
  /** Its number among the followed requests of this thread, from 1. */
  readonly request: number;
  readonly events: readonly PostedEvent[];
  /** No more follow. */
  readonly ended: boolean;
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
  #batch: FollowedEvents[] = [];
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
      return new Tracer(this.options, start, (event) =>
        this.#send({ request, events: event === undefined ? [] : [event], ended: event === undefined }),
      );
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
    this.#send({ request, events: held.all(), ended: true });
  }

  #send(events: FollowedEvents): void {
    if (this.#closed) return;
    this.#batch.push(events);
    for (const { json } of events.events) this.#batchLength += json.length;
    if (this.#batchLength >= BATCH_LENGTH) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS);
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
