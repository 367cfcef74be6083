import type { ErrorCode } from "../../base/errors.ts";

/** Why a message was refused. `detail` says what is wrong and holds nothing of the message, so it is safe to show. */
export interface HeadError {
  readonly code: ErrorCode;
  readonly detail: string;
}

/** A refusal with status 400; made once at load, so that refusing costs no more than accepting. */
export function invalid(detail: string): HeadError {
  return { code: "TG_INVALID_REQUEST", detail };
}
