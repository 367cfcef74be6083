/** The main thread's end of one follower: numbers the requests of all workers, and keeps the bounds. */
import type { FollowedEvents } from "../trace/follower.ts";

/** The consumer of what someone follows: a stream of the admin server. */
export interface FollowReader {
  /** Writes an event with its number in the stream. False: the buffer is full and the event was not accepted. */
  event(json: string, id: number): boolean;
  /** No event follows. */
  end(): void;
  /** Set by the session; the reader calls it when it has room again after `event` returned false. */
  onDrain: (() => void) | undefined;
}

/** When following ends, so that nobody leaves it on. */
export interface FollowBounds {
  /** Requests. */
  readonly count: number;
  /** Milliseconds. */
  readonly forMs: number;
}

/** What is said about the stream, not about one request. Its JSON is documented in docs/trace.md. */
type FollowNotice =
  /** The reader was too slow: events are missing here, of so many requests. */
  | { readonly type: "dropped"; readonly count: number; readonly requests: number }
  /** `unfinished`: requests that it served and that were shown already. What was held for `where` is lost with it. */
  | { readonly type: "workerDied"; readonly worker: string; readonly unfinished: number; readonly held: boolean }
  /** The last event. `unfinished`: requests that continue. */
  | {
      readonly type: "followEnded";
      readonly reason: "count" | "time";
      readonly requests: number;
      readonly unfinished: number;
    };

/** Passes on the events of followed requests, each under the number of its request: 1 for the first of the stream. */
export class FollowSession {
  readonly #reader: FollowReader;
  readonly #bounds: FollowBounds;
  readonly #held: boolean;
  readonly #onEnough: () => void;
  readonly #onEnd: () => void;
  readonly #timer: NodeJS.Timeout;
  /** The numbers of requests in progress, by worker and by the number that the worker has given them. */
  readonly #open = new Map<number, Map<number, number>>();
  #requests = 0;
  #nextId = 1;
  #dropped = 0;
  readonly #droppedOf = new Set<number>();
  /** The last event, while it waits for room. */
  #last: FollowNotice | undefined;
  #over = false;

  /**
   * `held`: the events of a request come at its end. `onEnough`: no further request is wanted. `onEnd`: nothing is wanted any more.
   */
  constructor(
    reader: FollowReader,
    { bounds, held }: { readonly bounds: FollowBounds; readonly held: boolean },
    { onEnough, onEnd }: { readonly onEnough: () => void; readonly onEnd: () => void },
  ) {
    this.#reader = reader;
    this.#bounds = bounds;
    this.#held = held;
    this.#onEnough = onEnough;
    this.#onEnd = onEnd;
    reader.onDrain = () => this.#reportDropped();
    this.#timer = setTimeout(() => this.#end("time"), bounds.forMs);
  }

  deliver(worker: number, batch: readonly FollowedEvents[]): void {
    let open = this.#open.get(worker);
    if (open === undefined) {
      open = new Map();
      this.#open.set(worker, open);
    }
    for (const { request, events, ended } of batch) {
      const number = open.get(request) ?? this.#numberOf(events);
      if (number === undefined) continue;
      for (const { json } of events) this.#write(`{"request":${number},${json.slice(1)}`, number);
      if (ended) open.delete(request);
      else open.set(request, number);
    }
    if (this.#requests >= this.#bounds.count && this.#unfinished === 0) this.#end("count");
  }

  /** Says so, and ends its requests. */
  workerDied(worker: number): void {
    const numbers = [...(this.#open.get(worker)?.values() ?? [])];
    this.#open.delete(worker);
    for (const number of numbers) {
      const message = { type: "requestFinished", status: null, error: "the worker that served the request has died" };
      const event = { request: number, eventStart: null, eventEnd: 0, severity: "error", message };
      this.#write(JSON.stringify(event), number);
    }
    this.#write(
      notice({ type: "workerDied", worker: `worker-${worker}`, unfinished: numbers.length, held: this.#held }),
      undefined,
    );
    if (this.#requests >= this.#bounds.count && this.#unfinished === 0) this.#end("count");
  }

  /** The reader has gone. */
  close(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#onEnd();
  }

  /** The number of a request that is new; undefined: there are enough, or it was followed before the stream had enough and is over. */
  #numberOf(events: FollowedEvents["events"]): number | undefined {
    if (this.#over || events.length === 0 || this.#requests >= this.#bounds.count) return undefined;
    this.#requests++;
    if (this.#requests === this.#bounds.count) this.#onEnough();
    return this.#requests;
  }

  get #unfinished(): number {
    let sum = 0;
    for (const { size } of this.#open.values()) sum += size;
    return sum;
  }

  #end(reason: "count" | "time"): void {
    if (this.#over) return;
    this.#last = { type: "followEnded", reason, requests: this.#requests, unfinished: this.#unfinished };
    this.close();
    this.#reportDropped();
  }

  #write(json: string, request: number | undefined): void {
    if (this.#over) return;
    this.#reportDropped();
    if (this.#dropped === 0 && this.#reader.event(json, this.#nextId)) {
      this.#nextId++;
      return;
    }
    this.#dropped++;
    if (request !== undefined) this.#droppedOf.add(request);
  }

  /** Writes the `dropped` event if one is due, and then the last one, as far as the reader has room. */
  #reportDropped(): void {
    if (this.#dropped > 0) {
      const missing = { type: "dropped", count: this.#dropped, requests: this.#droppedOf.size } as const;
      if (!this.#reader.event(notice(missing), this.#nextId)) return;
      this.#nextId++;
      this.#dropped = 0;
      this.#droppedOf.clear();
    }
    if (this.#last === undefined || !this.#reader.event(notice(this.#last), this.#nextId)) return;
    this.#last = undefined;
    this.#reader.end();
  }
}

function notice(message: FollowNotice): string {
  const severity = message.type === "followEnded" ? "info" : "warn";
  return JSON.stringify({ request: null, eventStart: null, eventEnd: 0, severity, message });
}
