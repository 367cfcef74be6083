import type { ServerResponse } from "node:http";

/** A whole answer. */
export interface PlainReply {
  readonly status: number;
  readonly type: string;
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Runs when the answer has been handed to the system, or the client has gone. */
  readonly after?: () => void;
}

/** An answer that goes on: the function writes it; what it throws before the head is written becomes an error answer. */
export interface StreamReply {
  readonly stream: (response: ServerResponse) => Promise<void>;
}

export type Reply = PlainReply | StreamReply;

/** Plain text. Messages end with a line feed, so that they look right in a terminal. */
export function textReply(status: number, body: string, headers: Readonly<Record<string, string>> = {}): PlainReply {
  return { status, type: "text/plain; charset=utf-8", body, headers };
}

/** Indented JSON. */
export function jsonReply(value: unknown): PlainReply {
  return { status: 200, type: "application/json", body: `${JSON.stringify(value, null, 2)}\n` };
}

/** A file to save. */
export function fileReply(name: string, body: Uint8Array): PlainReply {
  const headers = { "content-disposition": `attachment; filename="${name}"` };
  return { status: 200, type: "application/octet-stream", body, headers };
}
