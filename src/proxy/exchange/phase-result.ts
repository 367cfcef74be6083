/**
 * What ends a phase. A phase returns it, or returns `WAIT`, and an event ends the phase later by `Exchange.endPhase`. The loop that acts on
 * it is in phases/handle-request.ts.
 */
import type { GatewayError } from "../../base/errors.ts";
import type { LocalReply } from "../../http/message/message.ts";

/** An event will end the phase. */
export const WAIT = Symbol("wait");
/** The attempt has a response; the response side has its head. */
export const ANSWERED = Symbol("answered");
/** Nothing more can be sent to the client: `finish` is next. */
export const GONE = Symbol("gone");

/** The attempt has no response, or not all of it. */
export class AttemptFailed {
  /** For the client, if no other attempt follows. */
  readonly error: GatewayError;
  /** The backend may still be processing the request. */
  readonly processing: boolean;

  constructor(error: GatewayError, processing = false) {
    this.error = error;
    this.processing = processing;
  }
}

export type AttemptOutcome = typeof ANSWERED | AttemptFailed;

/** The retry policy wants another attempt, after so many milliseconds. */
export class Retry {
  readonly afterMs: number;

  constructor(afterMs: number) {
    this.afterMs = afterMs;
  }
}

/** undefined = the next phase follows; an error or a reply becomes the response in place of what the phases would have sent. */
type Ended = undefined | GatewayError | LocalReply | AttemptOutcome | Retry | typeof GONE;
/** Promises are for phases that run policies. */
export type PhaseResult = Ended | typeof WAIT | Promise<undefined | LocalReply>;
