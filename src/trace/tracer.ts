import type { Severity, TraceEvent, TraceMessage } from "./events.ts";

export interface TraceOptions {
  /** Show the values of sensitive headers. */
  readonly reveal: boolean;
  /** Bytes of each body that a `bodySnapshot` carries; more is cut off. */
  readonly maxBodyBytes: number;
}

/** Bytes of a body in a trace when the watcher does not say otherwise (reference 4.2). */
export const DEFAULT_BODY_BYTES = 2 * 1024 * 1024;

/** Where the events of one trace go, as they happen. */
export type EventPost = (json: string | undefined) => void;

/** Takes the events of one request. */
export interface TraceSink {
  readonly options: TraceOptions;
  /** Whether it takes snapshots of the request's state. */
  readonly snapshots: boolean;
  /** Microseconds since the request began. */
  now(): number;
  /** `scope`: the calls of the gateway's own that the event belongs to, outermost first. */
  emit(severity: Severity, message: TraceMessage, eventStart?: number | null, scope?: readonly string[]): void;
  /** Nothing follows that belongs to the request. */
  finish(): void;
}

/** Gives every event to both. The first one's options hold. */
export function bothSinks(first: TraceSink, second: TraceSink): TraceSink {
  return {
    options: first.options,
    snapshots: first.snapshots || second.snapshots,
    now: () => first.now(),
    emit: (...event) => {
      first.emit(...event);
      second.emit(...event);
    },
    finish: () => {
      first.finish();
      second.finish();
    },
  };
}

/** Stamps and sends the events of one request; `finish` ends the stream. */
export class Tracer implements TraceSink {
  readonly snapshots = true;
  readonly options: TraceOptions;
  readonly #start: number;
  readonly #post: EventPost;
  #last = 0;
  #finished = false;

  /** `start` is `performance.now()` of the request. */
  constructor(options: TraceOptions, start: number, post: EventPost) {
    this.options = options;
    this.#start = start;
    this.#post = post;
  }

  /** Microseconds since the start of the trace; never decreases. */
  now(): number {
    this.#last = Math.max(this.#last, Math.round((performance.now() - this.#start) * 1000));
    return this.#last;
  }

  /** A call of the gateway's own may outlive its request, as copies for mirrors do: its later events are not part of the trace. */
  emit(
    severity: Severity,
    message: TraceMessage,
    eventStart: number | null = null,
    scope: readonly string[] = [],
  ): void {
    if (this.#finished) return;
    const event: TraceEvent = {
      eventStart,
      eventEnd: this.now(),
      severity,
      ...(scope.length > 0 && { scope }),
      message,
    };
    this.#post(JSON.stringify(event));
  }

  finish(): void {
    this.#finished = true;
    this.#post(undefined);
  }
}

/** The severity of a status or a failure (reference 4.2). */
export function severityOf(status: number | null, error: string | null): Severity {
  if (error !== null || (status !== null && status >= 500)) return "error";
  return status !== null && status >= 400 ? "warn" : "info";
}
