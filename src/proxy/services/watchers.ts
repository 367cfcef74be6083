/** Which request belongs to which watcher of traces. */
import { sameSecret } from "../../base/same-secret.ts";
import type { Activation, Condition } from "../../cel/index.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import type { Downstream } from "../../http/stream.ts";
import { ShownVariables } from "../../telemetry/shown-variables.ts";
import { compileFilter, type TraceFilter } from "../../trace/filter.ts";
import type { FollowerCounters } from "../../trace/follow-counters.ts";
import { type FollowedBatch, Follower, type FollowFilter } from "../../trace/follower.ts";
import type { TraceGate } from "../../trace/gate.ts";
import type { RequestSecrets } from "../../trace/secrets.ts";
import { tokenIn } from "../../trace/token.ts";
import {
  allSinks,
  type EventPost,
  hiding,
  type PostedEvent,
  type TraceOptions,
  Tracer,
  type TraceSink,
} from "../../trace/tracer.ts";

interface Watcher {
  readonly id: number;
  readonly slot: number;
  readonly token: string | undefined;
  readonly expression: Condition | undefined;
  readonly options: TraceOptions;
}

/** What chooses requests: a watcher, or a follower. */
type Chooser = Pick<Watcher, "expression" | "options">;

/** A watcher takes only requests for which its filter is known to be true. */
const passBy = (): boolean => false;

/** The watchers that this thread knows of; while the gate is disarmed a request does not look at them. */
export class Watchers {
  readonly #gate: TraceGate;
  readonly #send: (id: number, event: PostedEvent | undefined) => void;
  readonly #list: Watcher[] = [];
  readonly #followers = new Map<number, { readonly slot: number; readonly follower: Follower }>();

  /** `send` carries an event of watcher `id` to its reader; undefined ends the trace. */
  constructor(gate: TraceGate, send: (id: number, event: PostedEvent | undefined) => void) {
    this.#gate = gate;
    this.#send = send;
  }

  get armed(): boolean {
    return this.#gate.armed;
  }

  /** Does not throw: the thread that took the filter from the user has compiled it before. */
  add(id: number, slot: number, filter: TraceFilter, options: TraceOptions): void {
    const expression = compileFilter(filter);
    // A thread that starts while a watcher opens may learn of it twice; a copy would outlive the watcher and claim requests for the
    // next one in its slot.
    this.remove(id);
    this.#list.push({ id, slot, token: filter.token, expression, options });
  }

  /** Adds a follower, to whom `post` carries events. Does not throw, as `add`. */
  follow(
    { id, slot }: { readonly id: number; readonly slot: number },
    filter: FollowFilter,
    options: TraceOptions,
    counters: FollowerCounters,
    post: (batch: FollowedBatch) => void,
  ): void {
    this.remove(id);
    this.#followers.set(id, { slot, follower: new Follower(filter, options, counters, post) });
  }

  /** Sends what followers have collected. */
  flush(): void {
    for (const { follower } of this.#followers.values()) follower.flush();
  }

  remove(id: number): void {
    this.#followers.get(id)?.follower.close();
    this.#followers.delete(id);
    const index = this.#list.findIndex((watcher) => watcher.id === id);
    if (index !== -1) this.#list.splice(index, 1);
  }

  /**
   * Where the events of a request go that a watcher takes, or that someone follows; else undefined. `start` is `performance.now()` of the request. `secretsOf`: what
   * filters of traces that reveal nothing do not read either.
   */
  claim(
    request: HttpRequest,
    from: Pick<Downstream, "traceToken">,
    start: number,
    secretsOf: () => RequestSecrets,
  ): TraceSink | undefined {
    return this.#gate.armed ? this.#claim(request, from, start, secretsOf) : undefined;
  }

  // Separate from the check above, which runs for every request: its closure would allocate 48 bytes there.
  #claim(
    request: HttpRequest,
    from: Pick<Downstream, "traceToken">,
    start: number,
    secretsOf: () => RequestSecrets,
  ): TraceSink | undefined {
    const matches = ({ expression, options }: Chooser): boolean => {
      if (expression === undefined) return true;
      const view: Activation = { request: { ...request, startTime: new Date() } };
      // Whether a trace takes a request tells what its filter has read: guess by guess, a secret.
      return expression.matches(options.reveal ? view : new ShownVariables(view, secretsOf()), passBy);
    };
    return this.#take(from.traceToken, start, matches);
  }

  /**
   * The tracer of a request that could not be read. The token is searched for in the bytes `received`; watchers with an expression
   * do not take such requests.
   */
  claimUnreadable(received: Buffer, start: number): TraceSink | undefined {
    if (!this.#gate.armed) return undefined;
    return this.#take(tokenIn(received), start, ({ expression }) => expression === undefined);
  }

  /** The tracer of a connection without requests; watchers with a filter wait for requests. */
  claimConnection(start: number): TraceSink | undefined {
    return this.#gate.armed ? this.#take("", start, ({ expression }) => expression === undefined) : undefined;
  }

  /** The sink of a session of datagrams for those who follow; a trace waits for a request or a connection. */
  followSession(start: number): TraceSink | undefined {
    if (!this.#gate.armed) return undefined;
    return this.#withFollowers(undefined, start, ({ expression }) => expression === undefined);
  }

  /** One watcher at most takes a request; all who follow it see it too. */
  #take(token: string, start: number, matches: (chooser: Chooser) => boolean): TraceSink | undefined {
    return this.#withFollowers(this.#takeOne(token, start, matches), start, matches);
  }

  #withFollowers(
    watched: Tracer | undefined,
    start: number,
    matches: (chooser: Chooser) => boolean,
  ): TraceSink | undefined {
    const sinks: TraceSink[] = [];
    for (const { slot, follower } of this.#followers.values()) {
      if (!this.#gate.waits(slot) || !matches(follower)) continue;
      const sink = follower.begin(start);
      sinks.push(watched?.options.reveal ? hiding(sink) : sink);
    }
    if (watched !== undefined) return allSinks(watched, ...sinks);
    const [first, ...others] = sinks;
    return first && allSinks(first, ...others);
  }

  /** The watcher that the token names comes first, then those that take any request, the oldest first. */
  #takeOne(token: string, start: number, matches: (chooser: Chooser) => boolean): Tracer | undefined {
    const owners =
      token === "" ? [] : this.#list.filter((each) => each.token !== undefined && sameSecret(each.token, token));
    for (const watcher of [...owners, ...this.#list.filter((each) => each.token === undefined)]) {
      if (!matches(watcher) || !this.#gate.claim(watcher.slot)) continue;
      const post: EventPost = (event) => this.#send(watcher.id, event);
      return new Tracer(watcher.options, start, post);
    }
    return undefined;
  }
}
