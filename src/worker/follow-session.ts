/** The main thread's end of one stream of followed requests: numbers the requests of all workers, and keeps the bounds. */
import type { Produced } from "../trace/follow-counters.ts";
import type { FollowedBatch, LostEvents } from "../trace/follower.ts";
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

/** When a follow stream ends: at whichever comes first. */
export interface FollowBounds {
  /** Requests. */
  readonly count: number;
  /** Milliseconds. */
  readonly forMs: number;
}

type EndReason = "count" | "time" | "shutdown";

/** What is said about the stream, not about one request. Its JSON is documented in docs/trace.md. */
type FollowNotice =
  /**
   * So many events are missing here, the last ones of so many requests among them: the reader was too slow, or away for too long, the gateway
   * was too busy, or a worker has died. `ended`: those of the requests that had begun before, by number.
   */
  | { readonly type: "dropped"; readonly count: number; readonly requests: number; readonly ended: readonly number[] }
  /** `unfinished`: requests that it served and that were shown already. What was held for `where` is lost with it. */
  | { readonly type: "workerDied"; readonly worker: string; readonly unfinished: number; readonly held: boolean }
  /** The last event. `unfinished`: requests that continue. */
  | {
      readonly type: "followEnded";
      readonly reason: EndReason;
      readonly requests: number;
      readonly unfinished: number;
    };

const NONE: readonly number[] = [];
/** Milliseconds that a stream waits for its reader to come back. */
const UNREAD_MS = 10_000;
/** Characters that are written at once. */
const WRITE_LENGTH = 64 * 1024;

/** What has arrived from a worker. */
interface FromWorker {
  events: number;
  /** Requests, with those whose events were all lost. */
  begun: number;
  /** The numbers in the stream of requests in progress, by the number that the worker has given them. */
  readonly open: Map<number, number>;
}

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
  readonly #workers = new Map<number, FromWorker>();
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

  /** Whether its reader has gone. */
  get unread(): boolean {
    return this.#unread !== undefined;
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
    this.#unread = undefined;
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
  deliver(worker: number, { lost, text, requests }: FollowedBatch): void {
    const from = this.#from(worker);
    if (lost !== undefined) this.#lost(from, lost);
    let at = 0;
    for (const { request, lengths, ended } of requests) {
      from.events += lengths.length;
      const number = from.open.get(request) ?? this.#begin(from, request);
      let left = lengths.length;
      for (const length of lengths) {
        left--;
        const [start, end] = [at + "{".length, at + length];
        at = end;
        if (number !== undefined)
          this.#add(`{"request":${number},${text.slice(start, end)}`, ended && left === 0 ? [number] : NONE);
      }
      if (ended) from.open.delete(request);
    }
    this.#pump();
    this.#endIfEnough();
  }

  /** Says so, and ends its requests. `produced`: events and requests, of which not all may have arrived. */
  workerDied(worker: number, produced: Produced | undefined): void {
    const from = this.#from(worker);
    const unfinished = from.open.size;
    if (produced !== undefined) this.#lost(from, { ...missingFrom(from, produced), inProgress: [...from.open.keys()] });
    this.#workers.delete(worker);
    for (const number of from.open.values()) {
      const message = { type: "requestFinished", status: null, error: "the worker that served the request has died" };
      const event = { request: number, eventStart: null, eventEnd: 0, severity: "error", message };
      this.#add(JSON.stringify(event), [number]);
    }
    this.#add(notice({ type: "workerDied", worker: `worker-${worker}`, unfinished, held: this.#held }), NONE);
    this.#pump();
    this.#endIfEnough();
  }

  /** Ends it with its last event: the gateway ends. */
  shutDown(): void {
    this.#end("shutdown");
  }

  /** Ends it, whatever the reader has still to get. */
  giveUp(): void {
    clearTimeout(this.#unread);
    this.#stop();
    this.#events.onGone();
  }

  #from(worker: number): FromWorker {
    const from = this.#workers.get(worker) ?? { events: 0, begun: 0, open: new Map() };
    this.#workers.set(worker, from);
    return from;
  }

  /** The number of a request that is new; undefined: there are enough. */
  #begin(from: FromWorker, request: number): number | undefined {
    from.begun++;
    const number = this.#numberOfNew();
    if (number !== undefined) from.open.set(request, number);
    return number;
  }

  #numberOfNew(): number | undefined {
    if (this.#over || this.#requests >= this.#bounds.count) return undefined;
    this.#requests++;
    if (this.#requests === this.#bounds.count) this.#events.onEnough();
    return this.#requests;
  }

  /** Counts what has not arrived, with the requests of which nothing has. */
  #lost(from: FromWorker, { events, begun, inProgress }: LostEvents): void {
    const ended: number[] = [];
    const goOn = new Set(inProgress);
    for (const [request, number] of from.open)
      if (!goOn.has(request)) {
        from.open.delete(request);
        ended.push(number);
      }
    const all = [...ended];
    let gone = begun;
    for (const request of inProgress)
      if (!from.open.has(request)) {
        this.#begin(from, request);
        gone--;
      }
    from.begun += gone;
    for (; gone > 0; gone--) {
      const number = this.#numberOfNew();
      if (number !== undefined) all.push(number);
    }
    from.events += events;
    if (events > 0) this.#add(notice({ type: "dropped", count: events, requests: all.length, ended }), all, events);
  }

  get #unfinished(): number {
    let sum = 0;
    for (const { open } of this.#workers.values()) sum += open.size;
    return sum;
  }

  #endIfEnough(): void {
    if (this.#requests >= this.#bounds.count && this.#unfinished === 0) this.#end("count");
  }

  #end(reason: EndReason): void {
    if (this.#over) return;
    this.#add(notice({ type: "followEnded", reason, requests: this.#requests, unfinished: this.#unfinished }), NONE);
    this.#stop();
    this.#pump();
  }

  #stop(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#workers.clear();
    this.#events.onEnd();
  }

  /** `ended`: the requests that end with it; `events`: how many are missing, if it says that. */
  #add(json: string, ended: readonly number[], events?: number): void {
    if (!this.#over) this.#log.add(json, { ended, begun: this.#requests, events });
  }

  /** Writes as much as the reader has room for, and ends it behind the last event. */
  #pump(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    while (this.#position.event < this.#log.end.event) {
      const { missing, events, start, end } = this.#log.after(this.#position, WRITE_LENGTH);
      const written = events.map((event) => ({ json: event.json, id: this.#idOf(event.position) }));
      if (missing.events > 0) {
        const { events: count, ended: requests, endedOf: ended } = missing;
        const dropped = { type: "dropped", count, requests, ended } as const;
        written.unshift({ json: notice(dropped), id: this.#idOf(start) });
      }
      if (!reader.events(written)) return;
      this.#position = end;
    }
    if (this.#over) reader.end();
  }

  #idOf({ event, ended, begun }: Position): string {
    return `${this.name}-${event}-${ended}-${begun}`;
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
  const [, stream, event, ended, begun] = /^([0-9a-f]+)-(\d{1,10})-(\d{1,7})-(\d{1,7})$/.exec(id) ?? [];
  return stream === name ? { event: Number(event), ended: Number(ended), begun: Number(begun) } : undefined;
}

function missingFrom({ events, begun }: FromWorker, produced: Produced): Produced {
  return { events: produced.events - events, begun: produced.begun - begun };
}

function notice(message: FollowNotice): string {
  const severity = message.type === "followEnded" ? "info" : "warn";
  return JSON.stringify({ request: null, eventStart: null, eventEnd: 0, severity, message });
}
