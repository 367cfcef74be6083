import { compileCondition, type Expression } from "../cel/index.ts";
import { type HttpRequest, type HttpResponse, setHeader } from "../http/message.ts";
import type { Retry } from "../ir/policies.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** The request as it was before the policies of the backend: each attempt starts from there. */
const BEFORE = new WeakMap<ExchangeState, HttpRequest & { readonly authorityMode: "auto" | "fixed" }>();
/** Attempts that the retry policy has asked for. */
const REPEATS = new WeakMap<ExchangeState, number>();
const CONDITIONS = new WeakMap<Retry, Expression>();

/** Called before the policies of the backend run: at the first attempt the request is remembered, later it is restored. */
export function rememberRequest(x: ExchangeState): void {
  const before = BEFORE.get(x);
  if (before === undefined) {
    BEFORE.set(x, { ...x.request, headers: [...x.request.headers], authorityMode: x.authorityMode });
    return;
  }
  const { authority, method, path, search, headers, authorityMode } = before;
  Object.assign(x.request, { authority, method, path, search, headers: [...headers] });
  x.authorityMode = authorityMode;
  setHeader(x.request.headers, "x-retry-attempt", String(REPEATS.get(x) ?? 0));
}

/** Whether the policy leaves an attempt and the body can be sent once more. */
export function canRepeat(x: ExchangeState): boolean {
  const { retry, downstream } = x;
  if (retry === undefined || (REPEATS.get(x) ?? 0) >= retry.attempts) return false;
  return downstream.upgrade === "" && x.request.method !== "CONNECT" && (x.body?.repeatable ?? true);
}

/** Why a response is not to be passed on; undefined when it is. */
export function reasonToRepeat(x: ExchangeState, response: HttpResponse): string | undefined {
  const { retry } = x;
  if (retry === undefined) return undefined;
  if (retry.codes.includes(response.status)) return `status ${response.status}`;
  if (retry.condition === undefined) return undefined;
  let condition = CONDITIONS.get(retry);
  if (condition === undefined) {
    condition = compileCondition(retry.condition, "response");
    CONDITIONS.set(retry, condition);
  }
  return condition.matches(x.variables) ? "condition" : undefined;
}

/** Waits for the backoff, half of it fixed and half random, so that clients that failed together do not come back together. */
export function prepareRepeat(x: ExchangeState, why: string, again: () => void): void {
  const repeats = (REPEATS.get(x) ?? 0) + 1;
  REPEATS.set(x, repeats);
  const backoff = x.retry?.backoff ?? 0;
  const delay = backoff === 0 ? 0 : backoff / 2 + x.services.random() * backoff;
  x.trace?.applied("retry", { attempt: repeats, reason: why, delay: `${Math.round(delay)}ms` });
  clearTimeout(x.attemptTimer);
  const timer = setTimeout(() => {
    if (!x.over) again();
  }, delay);
  x.onOver(() => clearTimeout(timer));
}
