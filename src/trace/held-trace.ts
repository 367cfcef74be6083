import type { ExpressionResult, Severity, TraceMessage } from "./events.ts";
import { isCalled } from "./route-names.ts";
import { type PostedEvent, type TraceOptions, Tracer, type TraceSink } from "./tracer.ts";

/** The watcher that may get the request. */
interface Claim {
  /** The route that the watcher waits for, as in `isCalled`. */
  readonly route: string;
  /** Claims the watcher; false if another request has it, or it is gone. */
  readonly take: () => boolean;
  /** Carries an event to its reader; undefined ends the trace. */
  readonly send: (event: PostedEvent | undefined) => void;
  /** Called once the watcher has the request, or will not get it. */
  readonly onDecided: () => void;
}

/**
 * Holds the events of a request until its route is known. If a watcher waits for that route, its reader gets them and all later ones; otherwise
 * they are dropped.
 */
export class HeldTrace implements TraceSink {
  readonly snapshots = true;
  readonly #claim: Claim;
  readonly #tracer: Tracer;
  #state: "open" | "taken" | "dropped" = "open";
  #held: PostedEvent[] = [];

  /** `start`: `performance.now()` of the request. */
  constructor(options: TraceOptions, start: number, claim: Claim) {
    this.#claim = claim;
    this.#tracer = new Tracer(options, start, (event) => this.#post(event));
  }

  /** Finding out why other routes were not chosen takes long, so only the request that is traced says it. */
  get options(): TraceOptions {
    const { options } = this.#tracer;
    return this.#state === "taken" ? options : { ...options, candidates: false };
  }

  now(): number {
    return this.#tracer.now();
  }

  evaluated(result: ExpressionResult): void {
    this.#tracer.evaluated(result);
  }

  emit(severity: Severity, message: TraceMessage, eventStart?: number | null, scope?: readonly string[]): void {
    if (this.#state !== "dropped") this.#tracer.emit(severity, message, eventStart, scope);
  }

  routed(label: string | undefined): void {
    if (this.#state !== "open") return;
    if (label === undefined) this.finish();
    else if (isCalled(label, this.#claim.route) && this.#claim.take()) {
      this.#decide("taken");
      for (const event of this.#held.splice(0)) this.#claim.send(event);
    }
  }

  finish(): void {
    this.#tracer.finish();
  }

  #post(event: PostedEvent | undefined): void {
    if (this.#state === "taken") this.#claim.send(event);
    else if (event !== undefined) this.#held.push(event);
    else if (this.#state === "open") this.#decide("dropped");
  }

  #decide(state: "taken" | "dropped"): void {
    this.#state = state;
    if (state === "dropped") this.#held = [];
    this.#claim.onDecided();
  }
}
