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
import { HeldTrace } from "../../trace/held-trace.ts";
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
  /** It takes a request only once this route is chosen. */
  readonly route: string | undefined;
  readonly options: TraceOptions;
}

/** How many requests may be held for watchers at a time, with their events, until their routes are known. */
const MAX_HELD = 32;

/** What chooses requests: a watcher, or a follower. */
type Chooser = Pick<Watcher, "expression" | "options">;

type Choice = (chooser: Chooser) => boolean;

/** Expressions wait for requests that can be read. */
const WITHOUT_FILTER: Choice = ({ expression }) => expression === undefined;

/** A watcher takes only requests for which its filter is known to be true. */
const passBy = (): boolean => false;

/** The watchers that this thread knows of; while the gate is disarmed a request does not look at them. */
export class Watchers {
  readonly #gate: TraceGate;
  readonly #send: (id: number, event: PostedEvent | undefined) => void;
  readonly #list: Watcher[] = [];
  #held = 0;
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
    const { token, route } = filter;
    this.#list.push({ id, slot, token, expression, route, options });
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
    const taken = this.#take(from.traceToken, start, matches);
    return this.#withFollowers(taken.length > 0 ? taken : this.#heldFor(start, matches), start, matches);
  }

  /** Sinks for the watchers of routes: the route is chosen later, and then at most one of them takes the request. */
  #heldFor(start: number, matches: Choice): readonly TraceSink[] {
    let isTaken = false;
    const take = (id: number, slot: number): boolean => {
      // The slot may be another watcher's by now.
      if (isTaken || !this.#list.some((each) => each.id === id)) return false;
      isTaken = this.#gate.claim(slot);
      return isTaken;
    };
    return this.#list.flatMap(({ id, slot, route, expression, options }) => {
      if (route === undefined || this.#held >= MAX_HELD) return [];
      if (!this.#gate.waits(slot) || !matches({ expression, options })) return [];
      this.#held++;
      return new HeldTrace(options, start, {
        route,
        take: () => take(id, slot),
        send: (event) => this.#send(id, event),
        onDecided: () => {
          this.#held--;
        },
      });
    });
  }

  /**
   * The tracer of a request that could not be read. The token is searched for in the bytes `received`; watchers with an expression
   * do not take such requests.
   */
  claimUnreadable(received: Buffer, start: number): TraceSink | undefined {
    if (!this.#gate.armed) return undefined;
    return this.#withFollowers(this.#take(tokenIn(received), start, WITHOUT_FILTER), start, WITHOUT_FILTER);
  }

  /** The tracer of a connection without requests; watchers with a filter wait for requests. */
  claimConnection(start: number): TraceSink | undefined {
    if (!this.#gate.armed) return undefined;
    return this.#withFollowers(this.#take("", start, WITHOUT_FILTER), start, WITHOUT_FILTER);
  }

  /** The sink of a session of datagrams for those who follow; a trace waits for a request or a connection. */
  followSession(start: number): TraceSink | undefined {
    if (!this.#gate.armed) return undefined;
    return this.#withFollowers([], start, WITHOUT_FILTER);
  }

  /** Adds all who follow the request to the sinks of its watchers. */
  #withFollowers(watched: readonly TraceSink[], start: number, matches: Choice): TraceSink | undefined {
    const reveals = watched.some(({ options }) => options.reveal);
    const sinks = [...watched];
    for (const { slot, follower } of this.#followers.values()) {
      if (!this.#gate.waits(slot) || !matches(follower)) continue;
      const sink = follower.begin(start);
      sinks.push(reveals ? hiding(sink) : sink);
    }
    const [first, ...others] = sinks;
    return first && allSinks(first, ...others);
  }

  /**
   * The tracer for the watcher that takes the request, if there is one. The watcher that the token names comes first, then watchers of any
   * request, the oldest first.
   */
  #take(token: string, start: number, matches: Choice): readonly Tracer[] {
    const owners =
      token === "" ? [] : this.#list.filter((each) => each.token !== undefined && sameSecret(each.token, token));
    const others = this.#list.filter((each) => each.token === undefined && each.route === undefined);
    for (const watcher of [...owners, ...others]) {
      if (!matches(watcher) || !this.#gate.claim(watcher.slot)) continue;
      const post: EventPost = (event) => this.#send(watcher.id, event);
      return [new Tracer(watcher.options, start, post)];
    }
    return [];
  }
}
