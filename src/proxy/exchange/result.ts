/** How a request ended, for metrics, access log and traces. */
import { ERRORS, type ErrorCode, type Explained, type Reason } from "../../base/errors.ts";
import type { Decider, DecidingPolicy } from "../compile/provenance.ts";

export class Result {
  /** Status of the response that was sent; 0 = none. */
  status = 0;
  reason: Reason = "Upstream";
  error: string | undefined;
  /** Of `error`; undefined if a policy or the backend is the cause. */
  code: ErrorCode | undefined;
  /** Of `error`, or of a response that a policy makes; undefined: see `Provenance.ofError`. */
  decider: Decider | undefined;
  /** The policy that has thrown or sent what is about to end the request. */
  thrower: DecidingPolicy | undefined;
  /** `performance.now()` ms; 0 = not yet. */
  endedAt = 0;

  /** Why the gateway responds in place of the backend, or cuts the backend's response short: `rule` of the policy that has thrown, or the `route`. */
  blame(code: ErrorCode, message: string, rule?: number, route?: Explained["route"]): void {
    this.reason = ERRORS[code].reason;
    this.error = message;
    this.code = code;
    this.decider = route === undefined ? this.thrower && { ...this.thrower, rule } : { route };
    this.thrower = undefined;
  }

  /** A policy responds in place of the backend. */
  replied(reason: Reason): void {
    if (this.error === undefined) {
      this.reason = reason;
      this.decider = this.thrower;
    }
    this.thrower = undefined;
  }

  /** A policy has cut the response short. */
  cut(): void {
    this.error ??= "a policy aborted the response";
    this.decider ??= this.thrower;
  }

  /** The client has ended the request. An error that came before it is the cause. */
  clientGone(code: ErrorCode, message: string): void {
    this.error ??= message;
    this.code ??= code;
    this.reason = ERRORS[code].reason;
  }
}
