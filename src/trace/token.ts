import { randomBytes } from "node:crypto";

/**
 * The header field that binds a request to a watcher. The HTTP engine removes it from every request, so policies, backends,
 * logs and traces never see it.
 */
export const TRACE_TOKEN_HEADER = "x-tracegate-trace-token";

const FORM = /^[\w-]{22,128}$/;
const FIELD = new RegExp(`^${TRACE_TOKEN_HEADER}:[ \\t]*([\\w-]+)`, "im");

/** 32 random bytes as 43 characters. */
export function newTraceToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Whether the text has the form of a token: at least 16 random bytes in base64url or hex. */
export function isTraceToken(text: string): boolean {
  return FORM.test(text);
}

/** The token in the bytes of a request that could not be parsed; `` for none. */
export function tokenIn(received: Buffer): string {
  return FIELD.exec(received.toString("latin1"))?.[1] ?? "";
}
