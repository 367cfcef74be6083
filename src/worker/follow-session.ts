/** The main thread's end of one stream of followed requests: numbers the requests of all workers, and keeps the bounds. */
import type { FollowedEvents } from "../trace/follower.ts";
import { FollowLog, type Position } from "./follow-log.ts";

/** The consumer of what someone follows: a stream of the admin server. */
export interface FollowReader {
  /** Writes events with their ids; without `json`, the id alone. False: the buffer is full and none of them was accepted. */
  events(events: readonly { readonly json?: string; readonly id: string }[]): boolean;
  /** No event follows. */
  end(): void;
  /** Set by the session; the reader calls it when it has room again after `events` returned false. */
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
  /** The reader was too slow, or away for too long: so many events are missing here, the last ones of so many requests among them. */
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

/** Milliseconds that a stream waits for its reader to come back. */
const UNREAD_MS = 10_000;
/** Characters that are written at once. */
const WRITE_LENGTH = 64 * 1024;

/**
 * Passes on the events of followed requests, each under the number of its request: 1 for the first of the stream. The reader can
 * change: another one goes on where the first broke off.
 */
export class FollowSession {
  /** Begins the ids of its events. */
  readonly name: string;
  readonly #bounds: FollowBounds;
  readonly #held: boolean;
  readonly #events: FollowEvents;
  readonly #timer: NodeJS.Timeout;
  readonly #log = new FollowLog();
  /** The numbers of requests in progress, by worker and by the number that the worker has given them. */
  readonly #open = new Map<number, Map<number, number>>();
  #requests = 0;
  #over = false;
  #reader: FollowReader | undefined;
  /** Up to where the reader has accepted events. */
  #position: Position = this.#log.end;
  /** Runs while there is no reader. */
  #unread: NodeJS.Timeout | undefined;

  /** `held`: the events of a request come at its end. */
  constructor(
    name: string,
    { bounds, held }: { readonly bounds: FollowBounds; readonly held: boolean },
    events: FollowEvents,
  ) {
    this.name = name;
    this.#bounds = bounds;
    this.#held = held;
    this.#events = events;
    this.#timer = setTimeout(() => this.#end("time"), bounds.forMs).unref();
  }

  /** Whether it has a reader. */
  get read(): boolean {
    return this.#reader !== undefined;
  }

  /** No event will be added. */
  get over(): boolean {
    return this.#over;
  }

  /** Whether anything follows this position. */
  canResume(position: Position): boolean {
    return this.#log.has(position) && !(this.#over && position.event === this.#log.end.event);
  }

  /** Writes what follows `position`, by default the beginning, to `reader` from now on, until the handle is closed or another one takes over. */
  attach(reader: FollowReader, position?: Position): { close(): void } {
    const before = this.#reader;
    this.#reader = reader;
    before?.end();
    clearTimeout(this.#unread);
    if (position !== undefined) this.#position = position;
    // A stream that breaks off before its first event can be resumed too.
    reader.events([{ id: this.#idOf(this.#position) }]);
    reader.onDrain = () => {
      if (this.#reader === reader) this.#pump();
    };
    this.#pump();
    return {
      close: () => {
        if (this.#reader !== reader) return;
        this.#reader = undefined;
        this.#unread = setTimeout(() => this.giveUp(), UNREAD_MS).unref();
      },
    };
  }

  /** Events of this worker's requests. */
  deliver(worker: number, batch: readonly FollowedEvents[]): void {
    let open = this.#open.get(worker);
    if (open === undefined) {
      open = new Map();
      this.#open.set(worker, open);
    }
    for (const { request, events, ended } of batch) {
      const number = open.get(request) ?? this.#numberOfNew();
      if (number === undefined) continue;
      for (const [index, { json }] of events.entries())
        this.#add(`{"request":${number},${json.slice(1)}`, ended && index === events.length - 1);
      if (ended) open.delete(request);
      else open.set(request, number);
    }
    this.#pump();
    this.#endIfEnough();
  }

  /** Says so, and ends its requests. */
  workerDied(worker: number): void {
    const numbers = [...(this.#open.get(worker)?.values() ?? [])];
    this.#open.delete(worker);
    for (const number of numbers) {
      const message = { type: "requestFinished", status: null, error: "the worker that served the request has died" };
      const event = { request: number, eventStart: null, eventEnd: 0, severity: "error", message };
      this.#add(JSON.stringify(event), true);
    }
    const died = {
      type: "workerDied",
      worker: `worker-${worker}`,
      unfinished: numbers.length,
      held: this.#held,
    } as const;
    this.#add(notice(died), false);
    this.#pump();
    this.#endIfEnough();
  }

  /** Ends it, whatever the reader has still to get. */
  giveUp(): void {
    clearTimeout(this.#unread);
    this.#stop();
    this.#events.onGone();
  }

  /** The number of a request that is new; undefined: there are enough. */
  #numberOfNew(): number | undefined {
    if (this.#over || this.#requests >= this.#bounds.count) return undefined;
    this.#requests++;
    if (this.#requests === this.#bounds.count) this.#events.onEnough();
    return this.#requests;
  }

  get #unfinished(): number {
    let sum = 0;
    for (const { size } of this.#open.values()) sum += size;
    return sum;
  }

  #endIfEnough(): void {
    if (this.#requests >= this.#bounds.count && this.#unfinished === 0) this.#end("count");
  }

  #end(reason: "count" | "time"): void {
    if (this.#over) return;
    this.#add(notice({ type: "followEnded", reason, requests: this.#requests, unfinished: this.#unfinished }), false);
    this.#stop();
    this.#pump();
  }

  #stop(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#open.clear();
    this.#events.onEnd();
  }

  #add(json: string, last: boolean): void {
    if (!this.#over) this.#log.add(json, last);
  }

  /** Writes as much as the reader has room for, and ends it behind the last event. */
  #pump(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    while (this.#position.event < this.#log.end.event) {
      const { missing, events, start, end } = this.#log.after(this.#position, WRITE_LENGTH);
      const written = events.map((event) => ({ json: event.json, id: this.#idOf(event.position) }));
      if (missing.events > 0) {
        const dropped = { type: "dropped", count: missing.events, requests: missing.ended } as const;
        written.unshift({ json: notice(dropped), id: this.#idOf(start) });
      }
      if (!reader.events(written)) return;
      this.#position = end;
    }
    if (this.#over) reader.end();
  }

  #idOf({ event, ended }: Position): string {
    return `${this.name}-${event}-${ended}`;
  }
}

/** What its owner has to do. */
interface FollowEvents {
  /** No further request is wanted. */
  onEnough(): void;
  /** Nothing is wanted any more. */
  onEnd(): void;
  /** No reader can go on with it. */
  onGone(): void;
}

/** The position behind the event with this id, if it is one of the stream `name`. */
export function positionOf(id: string, name: string): Position | undefined {
  const [, stream, event, ended] = /^([0-9a-f]+)-(\d{1,10})-(\d{1,7})$/.exec(id) ?? [];
  return stream === name ? { event: Number(event), ended: Number(ended) } : undefined;
}

function notice(message: FollowNotice): string {
  const severity = message.type === "followEnded" ? "info" : "warn";
  return JSON.stringify({ request: null, eventStart: null, eventEnd: 0, severity, message });
}
