/** What kept an admin request from its answer. */
export type AdminFailure =
  /** No connection; `message` says where it looked. */
  | "unreachable"
  /** The server answered with another status than 200; see `status` and `body`. */
  | "status"
  /** The answer is not what this interface promises, or broke off. */
  | "protocol"
  | "timeout"
  /** The caller's signal. */
  | "aborted";

/** The one error of the admin client. */
export class AdminClientError extends Error {
  readonly kind: AdminFailure;
  /** HTTP status of the answer, for kind `status`. */
  readonly status: number | undefined;
  /** Text of the answer without its final line feed, for kind `status`. */
  readonly body: string | undefined;

  constructor(kind: AdminFailure, message: string, more: { status?: number; body?: string; cause?: unknown } = {}) {
    super(message, { cause: more.cause });
    this.kind = kind;
    this.status = more.status;
    this.body = more.body;
  }
}
