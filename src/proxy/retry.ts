/**
 * The `retry` policy (reference 3.18): whether a request is tried once more, and when. handle-request.ts has the loop; a replay
 * on a new connection because a pooled one was stale is no retry and happens within an attempt.
 */
import { decimal, type HttpRequest, setHeader } from "../http/message.ts";
import type { Exchange } from "./exchange.ts";

/** Each attempt starts from the same request: called before the policies of the backend, which may change it. */
export function prepareAttempt(exchange: Exchange): void {
  const { request, retries } = exchange;
  if (exchange.retry === undefined) return;
  if (retries === undefined) {
    exchange.retries = { count: 0, original: copyOf(request) };
    return;
  }
  Object.assign(request, copyOf(retries.original));
  setHeader(request.headers, "x-retry-attempt", decimal(retries.count));
}

function copyOf(request: HttpRequest): HttpRequest {
  return { ...request, headers: [...request.headers] };
}

/** Whether the policy leaves an attempt and the request can be sent once more. */
export function retryAllowed({ retry, retries, downstream, request, requestSide }: Exchange): boolean {
  if (retry === undefined || (retries?.count ?? 0) >= retry.attempts) return false;
  // The client waits for a tunnel to one backend.
  return downstream.upgrade === "" && request.method !== "CONNECT" && requestSide.repeatable;
}

/** A response for which the condition fails goes to the client. */
const passOn = (): boolean => false;

/** Why the upstream's response is not passed on; undefined when it is. */
export function reasonToRetry(exchange: Exchange): string | undefined {
  const { retry, responseSide } = exchange;
  if (retry === undefined || !retryAllowed(exchange)) return undefined;
  const status = responseSide.head?.status;
  if (status !== undefined && retry.codes.has(status)) return `status ${status}`;
  return retry.condition?.matches(exchange.variables, passOn) === true ? "condition" : undefined;
}

/** Waits for the backoff, half of it fixed and half random, so that clients that failed together do not come back together. */
export function afterBackoff(exchange: Exchange, why: string, again: () => void): void {
  const { retry, retries, services, trace } = exchange;
  if (retries === undefined) return;
  retries.count++;
  const backoff = retry?.backoff ?? 0;
  const delay = backoff === 0 ? 0 : backoff / 2 + services.random() * backoff;
  trace?.applied("retry", { attempt: retries.count, reason: why, delay: `${Math.round(delay)}ms` });
  const timer = setTimeout(() => {
    if (!exchange.closed) again();
  }, delay);
  exchange.onClose(() => clearTimeout(timer));
}
