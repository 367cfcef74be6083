import { getHeader, type HttpRequest } from "../../http/message/message.ts";

/** A CORS preflight (Fetch, section 3.2.2). */
export function isPreflight({ method, headers }: HttpRequest): boolean {
  return (
    method === "OPTIONS" &&
    getHeader(headers, "origin") !== undefined &&
    (getHeader(headers, "access-control-request-method") ?? "") !== ""
  );
}
