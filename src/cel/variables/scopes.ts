/**
 * The variables that an expression can use. `arrival`: the request alone, for filters of traces; `network`: the connection;
 * `networkResponse`: connection and response; `request`: request, connection and results of earlier policies; `response`: all of
 * that and the response; `record`: what the recorder knows about a finished request. A name out of scope is an error when the expression
 * is compiled (docs/expressions.md#variables).
 */
export type Scope = "arrival" | "network" | "networkResponse" | "request" | "response" | "record";

/** What expressions of each scope are for. */
export const SCOPES: Readonly<Record<Scope, string>> = {
  request: "policies that act on requests",
  response: "policies that act on responses, access log, metrics",
  record: "where, over recorded requests",
  arrival: "the filter of a trace",
  network: "policies of connections",
  networkResponse: "the access log of connections",
};

export function isScope(name: string): name is Scope {
  return Object.hasOwn(SCOPES, name);
}
