import type { ServerResponse } from "node:http";
import { type AdminAnswers, JSON_TYPE } from "../plane/answers.ts";

/** A complete response. */
export interface PlainReply {
  readonly status: number;
  readonly type: string;
  readonly body: string | Uint8Array | Json;
  readonly headers?: Readonly<Record<string, string>>;
  /** Runs when the response has been handed to the kernel, or the client has disconnected. */
  readonly after?: () => void;
}

/** A value to send as JSON: compact for programs, which ask for `application/json`, and indented for people. */
interface Json {
  readonly json: unknown;
}

/** A streamed response: the function writes it; what it throws before the head is written becomes an error response. */
interface StreamReply {
  readonly stream: (response: ServerResponse) => Promise<void>;
}

export type Reply = PlainReply | StreamReply;

/** Plain text. Messages end with a line feed for terminals. */
export function textReply(status: number, body: string, headers: Readonly<Record<string, string>> = {}): PlainReply {
  return { status, type: "text/plain; charset=utf-8", body, headers };
}

export function jsonReply(json: unknown): PlainReply {
  return { status: 200, type: JSON_TYPE, body: { json } };
}

/** A body as a client with this `Accept` gets it. */
export function sentBody(body: PlainReply["body"], accept = ""): string | Uint8Array {
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  return accept === JSON_TYPE ? JSON.stringify(body.json) : `${JSON.stringify(body.json, null, 2)}\n`;
}

/** The answer of an endpoint whose type its clients share. */
export function answerReply<Endpoint extends keyof AdminAnswers>(
  _: Endpoint,
  answer: AdminAnswers[Endpoint],
): PlainReply {
  return jsonReply(answer);
}

/** A download. */
export function fileReply(name: string, body: Uint8Array): PlainReply {
  const headers = { "content-disposition": `attachment; filename="${name}"` };
  return { status: 200, type: "application/octet-stream", body, headers };
}
