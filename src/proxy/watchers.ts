import { type Expression, HttpRequestView } from "../cel/index.ts";
import type { HttpRequest } from "../http/message.ts";
import { compileFilter, type TraceFilter } from "../trace/filter.ts";
import type { TraceGate } from "../trace/gate.ts";
import { type EventPost, type TraceOptions, Tracer } from "../trace/tracer.ts";

interface Watcher {
  readonly id: number;
  readonly slot: number;
  readonly expression: Expression | undefined;
  readonly options: TraceOptions;
}

/** The watchers that this thread knows of; while the gate is disarmed a request does not look at them. */
export class Watchers {
  readonly #gate: TraceGate;
  readonly #send: (id: number, json: string | undefined) => void;
  readonly #list: Watcher[] = [];
  readonly #view = new HttpRequestView();

  /** `send` carries an event of watcher `id` to its reader; undefined ends the trace. */
  constructor(gate: TraceGate, send: (id: number, json: string | undefined) => void) {
    this.#gate = gate;
    this.#send = send;
  }

  /** The filter was compiled before by the thread that took it from the user, so it does not throw here. */
  add(id: number, slot: number, filter: TraceFilter | undefined, options: TraceOptions): void {
    const compiled = filter === undefined ? undefined : compileFilter(filter);
    // A thread that starts while a watcher opens may be told twice; a copy would outlive the watcher and take its slot's next.
    this.remove(id);
    this.#list.push({ id, slot, expression: compiled, options });
  }

  remove(id: number): void {
    const index = this.#list.findIndex((watcher) => watcher.id === id);
    if (index !== -1) this.#list.splice(index, 1);
  }

  /** The tracer of a request that a watcher takes, else undefined. `start` is `performance.now()` of the request. */
  claim(request: HttpRequest, start: number): Tracer | undefined {
    if (!this.#gate.armed) return undefined;
    for (const watcher of this.#list) {
      if (watcher.expression !== undefined && !watcher.expression.matches(this.#view.reset(request))) continue;
      if (!this.#gate.claim(watcher.slot)) continue;
      const post: EventPost = (json) => this.#send(watcher.id, json);
      return new Tracer(watcher.options, start, post);
    }
    return undefined;
  }
}
