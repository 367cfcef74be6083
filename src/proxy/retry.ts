import { type HttpRequest, type HttpResponse, setHeader } from "../http/message.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** Called before the policies of the backend run: at the first attempt the request is remembered, later it is restored. */
export function rememberRequest(x: ExchangeState): void {
  if (x.beforeAttempt === undefined) {
    x.beforeAttempt = copyOf(x.request);
    return;
  }
  Object.assign(x.request, copyOf(x.beforeAttempt));
  setHeader(x.request.headers, "x-retry-attempt", String(x.repeats));
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
export function reasonToRepeat(x: ExchangeState, response: HttpResponse): string | undefined {
  if (x.retry?.codes.has(response.status) === true) return `status ${response.status}`;
  return x.retry?.condition?.matches(x.variables, passOn) === true ? "condition" : undefined;
}

/** Waits for the backoff, half of it fixed and half random, so that clients that failed together do not come back together. */
export function prepareRepeat(x: ExchangeState, why: string, again: () => void): void {
  x.repeats++;
  const backoff = x.retry?.backoff ?? 0;
  const delay = backoff === 0 ? 0 : backoff / 2 + x.services.random() * backoff;
  x.trace?.applied("retry", { attempt: x.repeats, reason: why, delay: `${Math.round(delay)}ms` });
  clearTimeout(x.attemptTimer);
  const timer = setTimeout(() => {
    if (!x.over) again();
  }, delay);
  x.onOver(() => clearTimeout(timer));
}
