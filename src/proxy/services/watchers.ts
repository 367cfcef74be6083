/** Which request belongs to which watcher of traces. */
import type { Activation, Condition } from "../../cel/index.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import type { Downstream } from "../../http/stream.ts";
import { ShownVariables } from "../../telemetry/shown-variables.ts";
import { compileFilter, type TraceFilter } from "../../trace/filter.ts";
import type { TraceGate } from "../../trace/gate.ts";
import type { RequestSecrets } from "../../trace/secrets.ts";
import { sameToken, tokenIn } from "../../trace/token.ts";
import { type EventPost, type PostedEvent, type TraceOptions, Tracer } from "../../trace/tracer.ts";

interface Watcher {
  readonly id: number;
  readonly slot: number;
  readonly token: string | undefined;
  readonly expression: Condition | undefined;
  readonly options: TraceOptions;
}

/** A watcher takes only requests for which its filter is known to be true. */
const passBy = (): boolean => false;

/** The watchers that this thread knows of; while the gate is disarmed a request does not look at them. */
export class Watchers {
  readonly #gate: TraceGate;
  readonly #send: (id: number, event: PostedEvent | undefined) => void;
  readonly #list: Watcher[] = [];

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

  remove(id: number): void {
    const index = this.#list.findIndex((watcher) => watcher.id === id);
    if (index !== -1) this.#list.splice(index, 1);
  }

  /**
   * The tracer of a request that a watcher takes, else undefined. `start` is `performance.now()` of the request. `secretsOf`: what
   * filters of traces that reveal nothing do not read either.
   */
  claim(
    request: HttpRequest,
    from: Pick<Downstream, "traceToken">,
    start: number,
    secretsOf: () => RequestSecrets,
  ): Tracer | undefined {
    return this.#gate.armed ? this.#claim(request, from, start, secretsOf) : undefined;
  }

  // Separate from the check above, which runs for every request: its closure would allocate 48 bytes there.
  #claim(
    request: HttpRequest,
    from: Pick<Downstream, "traceToken">,
    start: number,
    secretsOf: () => RequestSecrets,
  ): Tracer | undefined {
    const matches = ({ expression, options }: Watcher): boolean => {
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
  claimUnreadable(received: Buffer, start: number): Tracer | undefined {
    if (!this.#gate.armed) return undefined;
    return this.#take(tokenIn(received), start, ({ expression }) => expression === undefined);
  }

  /** The tracer of a connection without requests; watchers with a filter wait for requests. */
  claimConnection(start: number): Tracer | undefined {
    return this.#gate.armed ? this.#take("", start, ({ expression }) => expression === undefined) : undefined;
  }

  /** The watcher that the token names comes first, then those that take any request, the oldest first. */
  #take(token: string, start: number, matches: (watcher: Watcher) => boolean): Tracer | undefined {
    const owners =
      token === "" ? [] : this.#list.filter((each) => each.token !== undefined && sameToken(each.token, token));
    for (const watcher of [...owners, ...this.#list.filter((each) => each.token === undefined)]) {
      if (!matches(watcher) || !this.#gate.claim(watcher.slot)) continue;
      const post: EventPost = (event) => this.#send(watcher.id, event);
      return new Tracer(watcher.options, start, post);
    }
    return undefined;
  }
}
