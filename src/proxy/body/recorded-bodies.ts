/** The beginnings of bodies that expressions of telemetry read when a request is over. */
import { BodyCapture } from "../../trace/body-capture.ts";
import type { BufferShare } from "./buffer-budget.ts";

/** Maximum bytes kept of each body; `maxBufferSize` if that is less. */
const MAX_BYTES = 64 * 1024;

/** Which bodies, and how much of each, the expressions of access log, metrics and spans read. */
export interface BodyCaptureOptions {
  readonly request: boolean;
  readonly response: boolean;
  /** Bytes. */
  readonly limit: number;
}

/** Reads requests at their end: access log, metrics or spans. */
interface Reader {
  /** Variables and bodies; see `Expression.reads`. */
  readonly reads: ReadonlySet<string>;
}

/** undefined if no expression reads a body, as in most configurations. */
export function bodyCaptureOptions(
  readers: readonly (Reader | undefined)[],
  maxBufferSize: number,
): BodyCaptureOptions | undefined {
  const asked = (message: string): boolean =>
    readers.some((reader) => reader?.reads.has(`${message}.body`) || reader?.reads.has(`${message}.bodyPrefix`));
  const request = asked("request");
  const response = asked("response");
  return request || response ? { request, response, limit: Math.min(MAX_BYTES, maxBufferSize) } : undefined;
}

/**
 * The beginnings of the bodies of one exchange, copied as they pass for expressions at its end (docs/expressions.md#variables):
 * the request body as the client sent it, the response body as the client receives it. The exchange does not wait for them.
 */
export class RecordedBodies {
  readonly request: BodyCapture | undefined;
  readonly response: BodyCapture | undefined;

  /** `share`: where the copies are counted. */
  constructor({ request, response, limit }: BodyCaptureOptions, share: BufferShare) {
    this.request = request ? new CountedCapture(limit, share) : undefined;
    this.response = response ? new CountedCapture(limit, share) : undefined;
  }
}

/** Stops when the worker's budget is used up: a log line is not worth a rejected request. */
class CountedCapture extends BodyCapture {
  readonly #share: BufferShare;
  #full = false;

  constructor(limit: number, share: BufferShare) {
    super(limit);
    this.#share = share;
  }

  override add(buffer: Buffer, from: number, to: number): void {
    this.#full ||= !this.#share.tryTake(Math.min(to - from, this.room));
    if (this.#full) this.truncated = true;
    else super.add(buffer, from, to);
  }
}
