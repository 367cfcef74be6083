import type { ErrorCode, Reason } from "../base/errors.ts";
import { Logger, type LogOutput } from "../base/log.ts";
import { formatOrigin, type Origin } from "../base/origin.ts";
import { mostBytes, writeAccessLine } from "./access-line.ts";
import type { AccessRecord } from "./access-record.ts";
import { type NcsaFormat, ncsaLine } from "./ncsa-line.ts";
import type { LoggedReasons } from "./settings.ts";

/** Where the next line is written. */
export interface LineBuffer {
  /** A buffer with room for a line of at most `most` bytes from `at` on. */
  room(most: number): Buffer;
  readonly at: number;
  /** A line ends before `end`; its last byte is its line break. */
  commit(end: number): void;
}

/** A request or connection that ended before it could be served. */
export interface Rejection {
  /** `<ip>:<port>` of the client. */
  readonly source: string;
  /** Of the response; undefined = none was sent. */
  readonly status?: number;
  readonly error: string;
  readonly code?: ErrorCode | undefined;
  /** Where the part of the configuration that decided was written. */
  readonly origin?: Origin | undefined;
  readonly reason?: Reason | undefined;
  /** Of the client, if it is not TCP. */
  readonly protocol?: "udp";
  /** How many other rejections have no line, because there were too many. */
  readonly unreported?: number | undefined;
}

/** The access log of one thread: one line for each request or connection, and others about those that were rejected. */
export class AccessLog extends Logger {
  readonly #lines: LineBuffer;
  readonly #reasons: LoggedReasons;
  /** The format of the lines, if it is one of Apache; `output` has the other ones. */
  readonly ncsa: NcsaFormat | undefined;

  /** `lines` go where those of `output` go. */
  constructor(output: LogOutput, lines: LineBuffer, reasons: LoggedReasons, ncsa?: NcsaFormat) {
    super("request", output);
    this.#lines = lines;
    this.#reasons = reasons;
    this.ncsa = ncsa;
  }

  /** Whether lines say what decided, which costs time to find out. */
  get explains(): boolean {
    return this.#reasons === "full";
  }

  /** The field `error` for an error. `code`: undefined if it has none, such as an error of a backend. `origin`: of what decided. */
  errorField(text: string | undefined, code: string | undefined, origin?: Origin): string | undefined {
    if (text === undefined || this.#reasons === "off") return undefined;
    if (this.#reasons === "code") return code;
    return origin === undefined ? text : `${text}, at ${formatOrigin(origin)}`;
  }

  /** A record as its line shows it. */
  asLogged(record: AccessRecord): AccessRecord {
    const { error, code, origin } = record;
    return this.explains && origin === undefined ? record : { ...record, error: this.errorField(error, code, origin) };
  }

  /** Writes the line of a rejection. */
  rejected({ source, status, protocol, error, code, origin, reason, unreported }: Rejection): void {
    if (this.ncsa !== undefined) {
      if (!this.enabled("info")) return;
      const record = { time: Date.now(), source, status, protocol: "", bytesReceived: 0, bytesSent: 0, durationMs: 0 };
      this.output.write(ncsaLine(record, this.ncsa, { user: undefined, referrer: undefined, agent: undefined }));
      return;
    }
    this.info("rejected", {
      "src.addr": source,
      "http.status": status,
      protocol,
      error: this.errorField(error, code, origin),
      reason,
      unreported,
    });
  }

  /** Writes the line of a record, whatever the level: see `enabled`. */
  write(record: AccessRecord): void {
    const lines = this.#lines;
    const bytes = lines.room(mostBytes(record));
    lines.commit(writeAccessLine(record, this.output.format, bytes, lines.at));
  }
}
