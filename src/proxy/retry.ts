import { type HttpRequest, type HttpResponse, setHeader } from "../http/message.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** Called before the policies of the backend run: at the first attempt the request is remembered, later it is restored. */
export function rememberRequest(exchange: ExchangeState): void {
  if (exchange.beforeAttempt === undefined) {
    exchange.beforeAttempt = copyOf(exchange.request);
    return;
  }
  Object.assign(exchange.request, copyOf(exchange.beforeAttempt));
  setHeader(exchange.request.headers, "x-retry-attempt", String(exchange.repeats));
}

function copyOf(request: HttpRequest): HttpRequest {
  return { ...request, headers: [...request.headers] };
}

/** Whether the policy leaves an attempt and the body can be sent once more. */
export function canRepeat({ retry, repeats, downstream, request, body }: ExchangeState): boolean {
  if (retry === undefined || repeats >= retry.attempts) return false;
  return downstream.upgrade === "" && request.method !== "CONNECT" && (body?.repeatable ?? true);
}

/** A response about which the condition says nothing goes to the client. */
const passOn = (): boolean => false;

/** Why a response is not to be passed on; undefined when it is. */
export function reasonToRepeat(exchange: ExchangeState, response: HttpResponse): string | undefined {
  if (exchange.retry?.codes.has(response.status) === true) return `status ${response.status}`;
  return exchange.retry?.condition?.matches(exchange.variables, passOn) === true ? "condition" : undefined;
}

/** Waits for the backoff, half of it fixed and half random, so that clients that failed together do not come back together. */
export function prepareRepeat(exchange: ExchangeState, why: string, again: () => void): void {
  exchange.repeats++;
  const backoff = exchange.retry?.backoff ?? 0;
  const delay = backoff === 0 ? 0 : backoff / 2 + exchange.services.random() * backoff;
  exchange.trace?.applied("retry", { attempt: exchange.repeats, reason: why, delay: `${Math.round(delay)}ms` });
  clearTimeout(exchange.attemptTimer);
  const timer = setTimeout(() => {
    if (!exchange.closed) again();
  }, delay);
  exchange.onClose(() => clearTimeout(timer));
}
