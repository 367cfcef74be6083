/** How a request ended, for metrics, access log and traces. */
import { ERRORS, type ErrorCode, type Reason } from "../../base/errors.ts";

export class Result {
  /** Status of the response that was sent; 0 = none. */
  status = 0;
  reason: Reason = "Upstream";
  error: string | undefined;
  /** Of `error`; undefined if a policy or the backend is the cause. */
  code: ErrorCode | undefined;
  /** `performance.now()` ms; 0 = not yet. */
  endedAt = 0;

  /** Why the gateway responds in place of the backend, or cuts the backend's response short. */
  blame(code: ErrorCode, message: string): void {
    this.reason = ERRORS[code].reason;
    this.error = message;
    this.code = code;
  }

  /** The client has ended the request. An error that came before it is the cause. */
  clientGone(code: ErrorCode, message: string): void {
    this.error ??= message;
    this.code ??= code;
    this.reason = ERRORS[code].reason;
  }
}
