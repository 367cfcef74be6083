import { compileFilter, type TraceFilter } from "../trace/filter.ts";
import { MAX_WATCHERS, type TraceGate } from "../trace/gate.ts";
import type { TraceOptions } from "../trace/tracer.ts";

/** Who reads the events of a watcher. */
export interface TraceReader {
  /** False = the reader is full and has not taken the event. */
  event(json: string): boolean;
  /** Nothing follows. */
  end(): void;
  /** Set by the hub: called when the reader takes events again after it refused one. */
  onDrain: (() => void) | undefined;
}

/** Tells every worker about watchers. */
export interface WatchControl {
  watch(id: number, slot: number, filter: TraceFilter, options: TraceOptions): Promise<void>;
  unwatch(id: number): void;
}

interface Watcher {
  readonly slot: number;
  readonly reader: TraceReader;
  dropped: number;
  lastEnd: number;
  ended: boolean;
}

/** There is no place for another watcher until one of the others has ended. */
export class TooManyTraces extends Error {}

/** The main thread's end of all traces: hands events to readers, counts what a slow reader misses and says so. */
export class TraceHub {
  readonly #gate: TraceGate;
  readonly #control: WatchControl;
  readonly #watchers = new Map<number, Watcher>();
  #nextId = 1;

  constructor(gate: TraceGate, control: WatchControl) {
    this.#gate = gate;
    this.#control = control;
  }

  /**
   * Opens a watcher for one request; when the promise resolves every worker knows it, so the next request is traced.
   * Throws CelError for a bad expression and TooManyTraces when too many watchers are open.
   */
  async open(
    options: TraceOptions & { readonly filter: TraceFilter },
    reader: TraceReader,
  ): Promise<{ close(): void }> {
    compileFilter(options.filter);
    const used = new Set([...this.#watchers.values()].map((watcher) => watcher.slot));
    let slot = 0;
    while (used.has(slot)) slot++;
    if (slot >= MAX_WATCHERS) throw new TooManyTraces(`${MAX_WATCHERS} traces are open already; try again later`);
    const id = this.#nextId++;
    const watcher: Watcher = { slot, reader, dropped: 0, lastEnd: 0, ended: false };
    this.#watchers.set(id, watcher);
    reader.onDrain = () => this.#reportDropped(watcher);
    const { reveal, maxBodyBytes } = options;
    await this.#control.watch(id, slot, options.filter, { reveal, maxBodyBytes });
    // The reader may have left while the workers were told.
    if (this.#watchers.has(id)) this.#gate.arm(slot);
    return { close: () => this.#remove(id) };
  }

  /** An event of watcher `id` from a worker; undefined ends the trace. */
  deliver(id: number, event: string | undefined): void {
    const watcher = this.#watchers.get(id);
    if (watcher === undefined) return;
    if (event === undefined) {
      this.#end(id, watcher);
      return;
    }
    watcher.lastEnd = Number(/"eventEnd":(\d+)/.exec(event)?.[1] ?? watcher.lastEnd);
    this.#reportDropped(watcher);
    if (watcher.dropped > 0 || !watcher.reader.event(event)) watcher.dropped++;
  }

  /** A worker has died: traces that it had claimed end here, visibly. */
  abandon(ids: Iterable<number>, reason: string): void {
    for (const id of [...ids]) {
      const watcher = this.#watchers.get(id);
      if (watcher === undefined) continue;
      const message = { type: "requestFinished", status: null, error: reason };
      this.deliver(id, JSON.stringify({ eventStart: null, eventEnd: watcher.lastEnd, severity: "error", message }));
      this.#end(id, watcher);
    }
  }

  /** Watchers that wait for a request, for a worker that starts late. */
  get size(): number {
    return this.#watchers.size;
  }

  #end(id: number, watcher: Watcher): void {
    if (watcher.dropped > 0) {
      // The reader is behind: it gets the count and the end as soon as it reads again.
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
