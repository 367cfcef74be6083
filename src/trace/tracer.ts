import type { Activation } from "../cel/index.ts";
import { type ExpressionResult, MESSAGE_TYPES, type Severity, type TraceEvent, type TraceMessage } from "./events.ts";

export interface TraceOptions {
  /** Show the values of sensitive headers. */
  readonly reveal: boolean;
  /** Bytes of each body in a `bodySnapshot`; the rest is cut off. */
  readonly maxBodyBytes: number;
  /** Milliseconds after the start of the request at which the trace ends, however long the request takes; undefined = no bound. */
  readonly maxMs?: number | undefined;
  /** Say why other routes were not selected, which takes longer to compute than most requests. Default: true. */
  readonly candidates?: boolean;
  /** Show the messages of WebSocket and gRPC. Default: false. */
  readonly messages?: boolean;
}

/** An event as it goes to the reader of its trace. */
export interface PostedEvent {
  readonly json: string;
  /** Its `eventEnd`. */
  readonly end: number;
}

/** The outcome of a request as variables of expressions, computed on demand. */
export type Outcome = () => Activation;

/** Receives the events of one trace as they happen; undefined ends the trace. `outcome`: only at the end, and only if it is known. */
export type EventPost = (event: PostedEvent | undefined, outcome?: Outcome) => void;

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
  /**
   * A route was chosen; called with its label before the event that says why. A route group may choose another one after it. undefined: no more
   * routes follow.
   */
  routed?(label: string | undefined): void;
  /** No events of the request follow. */
  finish(outcome?: Outcome): void;
}

/** Emits every event to all sinks, in the detail that the most demanding of them shows. */
export function allSinks(first: TraceSink, ...others: readonly TraceSink[]): TraceSink {
  if (others.length === 0) return first;
  const sinks = [first, ...others];
  return {
    options: {
      reveal: first.options.reveal,
      maxBodyBytes: Math.max(...sinks.map(({ options }) => options.maxBodyBytes)),
      get candidates() {
        return sinks.some(({ options }) => options.candidates ?? true);
      },
      messages: sinks.some(({ options }) => options.messages),
    },
    snapshots: sinks.some(({ snapshots }) => snapshots),
    now: () => first.now(),
    evaluated: (result) => {
      for (const sink of sinks) sink.evaluated(result);
    },
    emit: (severity, message, ...more) => {
      const forAll = !MESSAGE_TYPES.has(message.type);
      for (const sink of sinks) if (forAll || sink.options.messages === true) sink.emit(severity, message, ...more);
    },
    routed: (label) => {
      for (const sink of sinks) sink.routed?.(label);
    },
    finish: (outcome) => {
      for (const sink of sinks) sink.finish(outcome);
    },
  };
}

/**
 * A sink for a reader that must not see what another one reveals: of a request it gets the first event, the last, and the number of those
 * between.
 */
export function hiding(sink: TraceSink): TraceSink {
  let hidden = 0;
  return {
    options: sink.options,
    snapshots: false,
    now: () => sink.now(),
    evaluated: () => {},
    emit: (severity, message, ...more) => {
      const { type } = message;
      if (type === "requestFinished" && hidden > 0) sink.emit("warn", { type: "dropped", count: hidden });
      if (type === "requestStarted" || type === "requestFinished") sink.emit(severity, message, ...more);
      else hidden++;
    },
    finish: (outcome) => sink.finish(outcome),
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
      message: shown(message, this.options),
    };
    this.#post({ json: JSON.stringify(event), end: event.eventEnd });
  }

  finish(outcome?: Outcome): void {
    if (this.#finished) return;
    clearTimeout(this.#bound);
    this.#finished = true;
    this.#post(undefined, outcome);
  }

  #expire(): void {
    this.emit("info", {
      type: "traceEnded",
      reason: "the requested duration has passed; the request continues",
    });
    this.finish();
  }
}

/** The message in the detail that the options ask for; another reader of the request may have asked for more. */
function shown(message: TraceMessage, { maxBodyBytes, candidates = true }: TraceOptions): TraceMessage {
  if (message.type === "routeSelection" && !candidates) {
    const selected = message.candidates.filter(({ route, matched }) => matched && route === message.selectedRoute);
    const { omittedRoutes: _, ...others } = message;
    return { ...others, evaluatedRoutes: [], candidates: selected };
  }
  if (message.type === "streamMessage" && maxBodyBytes === 0) {
    const { body: _, truncated: __, ...rest } = message;
    return rest;
  }
  if (message.type !== "bodySnapshot" && message.type !== "streamMessage") return message;
  if (message.body === undefined || Buffer.byteLength(message.body, "base64") <= maxBodyBytes) return message;
  const body = Buffer.from(message.body, "base64").subarray(0, maxBodyBytes).toString("base64");
  return { ...message, body, truncated: true };
}

/** The severity of a status or a failure (docs/trace.md#reading-it). */
export function severityOf(status: number | null, error: string | null): Severity {
  if (error !== null || (status !== null && status >= 500)) return "error";
  return status !== null && status >= 400 ? "warn" : "info";
}
