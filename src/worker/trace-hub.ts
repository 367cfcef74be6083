/**
 * The main thread's end of all trace sessions. In: sessions that the admin server opens, and the events that workers send. Out:
 * events to readers, and watches to workers. Events are never lost silently: a reader that is too slow gets a `dropped` event
 * with their number, in the place where they are missing.
 */
import { randomBytes } from "node:crypto";
import { compileFilter, type TraceFilter } from "../trace/filter.ts";
import type { FollowCounters } from "../trace/follow-counters.ts";
import type { FollowedBatch, FollowFilter } from "../trace/follower.ts";
import { MAX_WATCHERS, type TraceGate } from "../trace/gate.ts";
import type { PostedEvent, TraceOptions } from "../trace/tracer.ts";

import { type FollowBounds, type FollowReader, FollowSession, positionOf } from "./follow-session.ts";

/** The consumer of one session's events: a stream of the admin server. */
export interface TraceReader {
  /** Writes an event. False: the buffer is full and the event was not accepted. */
  event(json: string): boolean;
  /** The session is over; no event follows. */
  end(): void;
  /** Set by the hub; the reader calls it when it has room again after `event` returned false. */
  onDrain: (() => void) | undefined;
}

/** Adds and removes watches in all workers. */
interface WatchControl {
  /** Resolves when every worker has the watch. */
  watch(id: number, slot: number, filter: TraceFilter, options: TraceOptions): Promise<void>;
  /** The same for someone who follows requests. */
  follow(id: number, slot: number, filter: FollowFilter, options: TraceOptions): Promise<void>;
  unwatch(id: number): void;
}

/** One session. */
interface Watcher {
  /** Its index in the gate. */
  readonly slot: number;
  readonly reader: TraceReader;
  /** Events not accepted since the last `dropped` event. */
  dropped: number;
  /** `eventEnd` of the last event, in microseconds, for events that the hub makes itself. */
  lastEnd: number;
  /** The trace has ended, but the reader does not know yet. */
  ended: boolean;
}

/** All slots of the gate are in use (`MAX_WATCHERS`). */
export class TooManyTraces extends Error {}

/** What a reader wants to go on with is over, or has never been. */
export class StreamGone extends Error {}

/** Bytes of what distinguishes streams, also those of an earlier process. */
const NAME_BYTES = 6;

/** Opens sessions, passes events to their readers, and reports events that a slow reader missed. */
export class TraceHub {
  readonly #gate: TraceGate;
  readonly #control: WatchControl;
  readonly #watchers = new Map<number, Watcher>();
  /** Those without a reader too, up to `MAX_WATCHERS`; the oldest first. */
  readonly #followers = new Map<number, { readonly slot: number; readonly session: FollowSession }>();
  #nextId = 1;

  constructor(gate: TraceGate, control: WatchControl) {
    this.#gate = gate;
    this.#control = control;
  }

  /**
   * Opens a session for one request. Once it resolves every worker has the watch, so the next matching request is traced.
   * Rejects with CelError for an invalid expression and with TooManyTraces.
   */
  async open(
    options: TraceOptions & { readonly filter: TraceFilter },
    reader: TraceReader,
  ): Promise<{ close(): void }> {
    compileFilter(options.filter);
    const slot = this.#freeSlot();
    const id = this.#nextId++;
    const watcher: Watcher = { slot, reader, dropped: 0, lastEnd: 0, ended: false };
    this.#watchers.set(id, watcher);
    reader.onDrain = () => this.#reportDropped(watcher);
    const { reveal, maxBodyBytes, maxMs } = options;
    await this.#control.watch(id, slot, options.filter, { reveal, maxBodyBytes, maxMs });
    // Armed last: a worker that claimed the slot without the watch would lose the trace. The reader may have gone meanwhile.
    if (this.#watchers.has(id)) this.#gate.arm(slot);
    return { close: () => this.#remove(id) };
  }

  /**
   * Follows the requests that the filter chooses, which has compiled before, until the reader goes or a bound is reached. Once it resolves
   * every worker takes part. Rejects with TooManyTraces.
   */
  async follow(
    { filter, options, ...bounds }: FollowBounds & { readonly filter: FollowFilter; readonly options: TraceOptions },
    reader: FollowReader,
  ): Promise<{ close(): void }> {
    const slot = this.#freeSlot();
    const id = this.#nextId++;
    const session = new FollowSession(
      randomBytes(NAME_BYTES).toString("hex"),
      { bounds, held: filter.where !== undefined },
      {
        onEnough: () => this.#gate.free(slot),
        onEnd: () => {
          this.#gate.free(slot);
          this.#control.unwatch(id);
        },
        onGone: () => this.#followers.delete(id),
      },
    );
    this.#followers.set(id, { slot, session });
    await this.#control.follow(id, slot, filter, options);
    if (!session.over) this.#gate.arm(slot);
    // Last: it tells the reader that requests are followed now.
    return session.attach(reader);
  }

  /** Goes on with a stream, for a reader that has received it up to the event with this id. @throws StreamGone */
  resume(id: string, reader: FollowReader): { close(): void } {
    for (const { session } of this.#followers.values()) {
      const position = positionOf(id, session.name);
      if (position !== undefined && session.canResume(position)) return session.attach(reader, position);
    }
    throw new StreamGone(
      "no stream goes on after this Last-Event-ID: it has ended, nobody read it for too long, or the gateway was started again; follow without the header",
    );
  }

  /** Passes on events that a worker has for follower `id`. */
  deliverFollowed(id: number, worker: number, batch: FollowedBatch): void {
    this.#followers.get(id)?.session.deliver(worker, batch);
  }

  /** Tells all followers. `counters`: of the worker. */
  workerDied(worker: number, counters: FollowCounters): void {
    for (const [id, { slot, session }] of [...this.#followers])
      session.workerDied(worker, counters.producedBy(slot, id));
  }

  /** Ends all streams of followed requests; no worker runs any more. */
  shutDown(): void {
    for (const { session } of this.#followers.values()) session.shutDown();
  }

  #freeSlot(): number {
    const used = new Set([...this.#watchers.values(), ...this.#followers.values()].map(({ slot }) => slot));
    let slot = 0;
    while (used.has(slot)) slot++;
    const unread =
      slot < MAX_WATCHERS ? undefined : [...this.#followers.values()].find(({ session }) => session.unread);
    if (unread !== undefined) {
      unread.session.giveUp();
      return unread.slot;
    }
    if (slot >= MAX_WATCHERS) throw new TooManyTraces(`${MAX_WATCHERS} traces are open already; try again later`);
    return slot;
  }

  /** Passes on an event of watcher `id`; undefined ends the trace. Late events of closed sessions are ignored. */
  deliver(id: number, event: PostedEvent | undefined): void {
    const watcher = this.#watchers.get(id);
    if (watcher === undefined) return;
    if (event === undefined) {
      this.#end(id, watcher);
      return;
    }
    watcher.lastEnd = event.end;
    this.#reportDropped(watcher);
    if (watcher.dropped > 0 || !watcher.reader.event(event.json)) watcher.dropped++;
  }

  /** Ends sessions whose worker has died, with a last event that says so. */
  abandon(ids: Iterable<number>, reason: string): void {
    for (const id of [...ids]) {
      const watcher = this.#watchers.get(id);
      if (watcher === undefined) continue;
      const message = { type: "requestFinished", status: null, error: reason };
      const end = watcher.lastEnd;
      this.deliver(id, { json: JSON.stringify({ eventStart: null, eventEnd: end, severity: "error", message }), end });
      this.#end(id, watcher);
    }
  }

  /** The number of open sessions. */
  get size(): number {
    return this.#watchers.size;
  }

  #end(id: number, watcher: Watcher): void {
    if (watcher.dropped > 0) {
      // The reader is behind: the count and the end follow when it has room. Its slot is free for others now.
      watcher.ended = true;
      this.#gate.free(watcher.slot);
      this.#control.unwatch(id);
      this.#watchers.delete(id);
      this.#reportDropped(watcher);
      return;
    }
    this.#remove(id);
    watcher.reader.end();
  }

  /** Writes the `dropped` event if one is due and the reader has room. */
  #reportDropped(watcher: Watcher): void {
    if (watcher.dropped === 0) return;
    const message = { type: "dropped", count: watcher.dropped };
    const event = { eventStart: null, eventEnd: watcher.lastEnd, severity: "warn", message };
    if (!watcher.reader.event(JSON.stringify(event))) return;
    watcher.dropped = 0;
    if (watcher.ended) watcher.reader.end();
  }

  #remove(id: number): void {
    const watcher = this.#watchers.get(id);
    if (watcher === undefined) return;
    this.#watchers.delete(id);
    this.#gate.free(watcher.slot);
    this.#control.unwatch(id);
  }
}
