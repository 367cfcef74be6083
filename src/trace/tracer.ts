import type { ExpressionResult, Severity, TraceEvent, TraceMessage } from "./events.ts";

export interface TraceOptions {
  /** Show the values of sensitive headers. */
  readonly reveal: boolean;
  /** Bytes of each body in a `bodySnapshot`; the rest is cut off. */
  readonly maxBodyBytes: number;
  /** Milliseconds after the start of the request at which the trace ends, however long the request takes; undefined = no bound. */
  readonly maxMs?: number | undefined;
}

/** An event as it goes to the reader of its trace. */
export interface PostedEvent {
  readonly json: string;
  /** Its `eventEnd`. */
  readonly end: number;
}

/** Receives the events of one trace as they happen; undefined ends the trace. */
export type EventPost = (event: PostedEvent | undefined) => void;

/** Takes the events of one request. */
export interface TraceSink {
  readonly options: TraceOptions;
  /** Whether it records snapshots of the request's state. */
  readonly snapshots: boolean;
  /** Microseconds since the request began. */
  now(): number;
  /** An expression was evaluated; the next event shows it. */
  evaluated(result: ExpressionResult): void;
  /** `scope`: the callouts that the event belongs to, outermost first. */
  emit(severity: Severity, message: TraceMessage, eventStart?: number | null, scope?: readonly string[]): void;
  /** No events of the request follow. */
  finish(): void;
}

/** Emits every event to both sinks, with the options of the first. */
export function bothSinks(first: TraceSink, second: TraceSink): TraceSink {
  return {
    options: first.options,
    snapshots: first.snapshots || second.snapshots,
    now: () => first.now(),
    evaluated: (result) => {
      first.evaluated(result);
      second.evaluated(result);
    },
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

/** Expressions that one event shows. */
const MAX_EXPRESSIONS = 50;

/** Adds times to the events of one request and posts them; `finish` ends the stream. */
export class Tracer implements TraceSink {
  readonly snapshots = true;
  readonly options: TraceOptions;
  readonly #start: number;
  readonly #post: EventPost;
  readonly #bound: NodeJS.Timeout | undefined;
  readonly #expressions: ExpressionResult[] = [];
  #last = 0;
  #finished = false;

  /** `start` is `performance.now()` of the request. */
  constructor(options: TraceOptions, start: number, post: EventPost) {
    this.options = options;
    this.#start = start;
    this.#post = post;
    const { maxMs } = options;
    if (maxMs !== undefined) this.#bound = setTimeout(() => this.#expire(), maxMs).unref();
  }

  /** Microseconds since the start of the trace; never decreases. */
  now(): number {
    this.#last = Math.max(this.#last, Math.round((performance.now() - this.#start) * 1000));
    return this.#last;
  }

  evaluated(result: ExpressionResult): void {
    if (this.#expressions.length < MAX_EXPRESSIONS) this.#expressions.push(result);
  }

  /** Does nothing after `finish`: a callout, such as a mirror, can outlive its request, but not the trace. */
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
      ...(this.#expressions.length > 0 && { expressions: this.#expressions.splice(0) }),
      message,
    };
    this.#post({ json: JSON.stringify(event), end: event.eventEnd });
  }

  finish(): void {
    if (this.#finished) return;
    clearTimeout(this.#bound);
    this.#finished = true;
    this.#post(undefined);
  }

  #expire(): void {
    this.emit("info", {
      type: "traceEnded",
      reason: "the requested duration has passed; the request continues",
    });
    this.finish();
  }
}

/** The severity of a status or a failure (docs/trace.md#reading-it). */
export function severityOf(status: number | null, error: string | null): Severity {
  if (error !== null || (status !== null && status >= 500)) return "error";
  return status !== null && status >= 400 ? "warn" : "info";
}
