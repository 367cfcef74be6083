/**
 * The `retry` policy (docs/policies/retry.md): whether a request is retried, and when. handle-request.ts has the loop. A replay
 * on a new connection because a pooled one was stale is not a retry and happens within an attempt.
 */
import { grpcStatusIn, isGrpc } from "../../http/grpc-reply.ts";
import { decimal, getHeader, type HttpRequest, madeOf, setHeader } from "../../http/message/message.ts";
import { UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { BackendCalls } from "../../upstream/endpoints/endpoints.ts";
import type { CompiledBackend } from "../compile/compiled.ts";
import type { Exchange, RetryState } from "../exchange/exchange.ts";
import type { ResponseSide } from "../exchange/response-side.ts";
import { canServe, pick } from "./select-backend.ts";

/** Each attempt starts from the same request: called before the policies of the backend, which may change it. */
export function prepareAttempt(exchange: Exchange): void {
  const { request, retries } = exchange;
  if (exchange.retry === undefined) return;
  if (retries === undefined) {
    const original = copyOf(request);
    exchange.retries = { count: 0, original, wait: undefined, tried: undefined, counted: undefined, leaves: false };
    return;
  }
  Object.assign(request, copyOf(retries.original));
  setHeader(request.headers, "x-retry-attempt", decimal(retries.count));
}

function copyOf(request: HttpRequest): HttpRequest {
  return { ...request, headers: madeOf(request.headers, [...request.headers]) };
}

/** Whether a failed attempt is followed by another one. */
export function retryAllowed(exchange: Exchange): boolean {
  return repeatable(exchange) && takeTurn(exchange);
}

/** Whether the policy allows another attempt and the request can be sent again. */
function repeatable({ retry, retries, downstream, request, requestSide }: Exchange): boolean {
  if (retry === undefined || (retries?.count ?? 0) >= retry.attempts) return false;
  // The client waits for a tunnel to one backend.
  return downstream.upgrade === "" && request.method !== "CONNECT" && requestSide.repeatable;
}

/** Chooses the backend of the next attempt. False: its limits allow no further retry. */
function takeTurn(exchange: Exchange): boolean {
  const { selected } = exchange;
  const next = otherBackend(exchange) ?? selected.backend;
  if (next === undefined || !withinLimits(exchange, next)) return false;
  if (next === selected.backend) return true;
  selected.backend = next;
  selected.dynamicTarget = "";
  return true;
}

/** A backend of the route that the request has not tried, if the policy allows that and there is one. */
function otherBackend({ retry, retries, selected, services }: Exchange): CompiledBackend | undefined {
  const { route, backend } = selected;
  if (retry?.otherBackends !== true || retries === undefined || route === undefined || backend === undefined)
    return undefined;
  retries.tried ??= new Set();
  const { tried } = retries;
  tried.add(backend);
  const backends = route.backends.filter((each) => !tried.has(each) && canServe(each));
  const totalWeight = backends.reduce((sum, { weight }) => sum + weight, 0);
  return pick({ backends, totalWeight }, services);
}

/** Whether the limits of the backend allow another retry; if so, it is counted. */
function withinLimits(exchange: Exchange, backend: CompiledBackend): boolean {
  const { retries, trace } = exchange;
  if (retries === undefined) return false;
  const { calls, retries: limits } = backend;
  // A request counts as retried until it ends or goes to another backend, however many retries it has.
  const isFirst = retries.counted !== calls;
  if (limits !== undefined) {
    let why: string | undefined;
    if (isFirst && calls.retrying >= limits.max) why = `${limits.max} retried requests to the backend are in progress`;
    else if (limits.budget?.take(performance.now()) === false) why = "the retry budget of the backend is used up";
    if (why !== undefined) {
      limits.overflows.count++;
      trace?.skipped("retry", why, "warn");
      return false;
    }
  }
  if (isFirst) count(exchange, retries, limits === undefined ? undefined : calls);
  return true;
}

function count(exchange: Exchange, retries: RetryState, calls: BackendCalls | undefined): void {
  if (retries.counted !== undefined) retries.counted.retrying--;
  retries.counted = calls;
  if (calls === undefined) return;
  calls.retrying++;
  if (retries.leaves) return;
  retries.leaves = true;
  exchange.onClose(() => {
    if (retries.counted !== undefined) retries.counted.retrying--;
  });
}

/** A response is passed on if the condition fails. */
const passOn = (): boolean => false;

/** Why the request is retried in spite of a response; undefined if the response is passed on. */
export function reasonToRetry(exchange: Exchange): string | undefined {
  const { retry, responseSide } = exchange;
  if (retry === undefined || !repeatable(exchange)) return undefined;
  const status = responseSide.head?.status;
  let why: string | undefined;
  if (status !== undefined && retry.codes.has(status)) why = `status ${status}`;
  else if (retry.grpcCodes !== undefined && failedWith(retry.grpcCodes, exchange))
    why = `gRPC status ${responseSide.grpcStatus}`;
  else if (retry.condition?.matches(exchange.variables, passOn) === true) why = "condition";
  return why !== undefined && takeTurn(exchange) ? why : undefined;
}

/**
 * Whether a response of `length` bytes, whose head has arrived, may still be retried because of a gRPC status in its trailers. Then its
 * head is held until the first message.
 */
export function mayFailInTrailers(exchange: Exchange, length: number): boolean {
  const { retry, responseSide } = exchange;
  if (retry?.grpcCodes === undefined || length !== UNKNOWN_LENGTH) return false;
  const headers = responseSide.head?.headers ?? [];
  return isGrpc(headers) && grpcStatusIn(headers) === undefined && repeatable(exchange);
}

/** Whether a gRPC call has failed with one of these codes, and its service does not forbid another attempt. */
function failedWith(codes: ReadonlySet<number>, { responseSide, retries, trace }: Exchange): boolean {
  const { grpcStatus } = responseSide;
  if (grpcStatus === undefined || !codes.has(grpcStatus) || retries === undefined) return false;
  const wait = pushback(responseSide);
  if (wait === undefined || wait >= 0) retries.wait = wait;
  else trace?.skipped("retry", "the backend does not want another attempt");
  return wait === undefined || wait >= 0;
}

const PUSHBACK = "grpc-retry-pushback-ms";

/** Milliseconds that a gRPC service requests before the next attempt; undefined = it requests nothing, -1 = no further attempt. */
function pushback({ head, trailers }: ResponseSide): number | undefined {
  const text = (head && getHeader(head.headers, PUSHBACK)) ?? getHeader(trailers, PUSHBACK);
  if (text === undefined) return undefined;
  // Malformed values mean the same as negative ones (gRPC proposal A6, "Pushback").
  return /^\d{1,9}$/.test(text) ? Number(text) : -1;
}

/** Waits for the backoff, half of it fixed and half random, so that clients that failed together do not come back together. */
export function afterBackoff(exchange: Exchange, why: string, again: () => void): void {
  const { retry, retries, services, trace } = exchange;
  if (retries === undefined) return;
  retries.count++;
  // The response to the last attempt has stopped it.
  exchange.startDeadline();
  const backoff = retry?.backoff ?? 0;
  const delay = retries.wait ?? (backoff === 0 ? 0 : backoff / 2 + services.random() * backoff);
  retries.wait = undefined;
  trace?.applied("retry", {
    attempt: retries.count,
    reason: why,
    delay: `${Math.round(delay)}ms`,
    ...whereTo(exchange),
  });
  const timer = setTimeout(() => {
    // The deadline may have ended the exchange in the meantime.
    if (!exchange.closed && exchange.responseSide.head === undefined) again();
  }, delay);
  exchange.onClose(() => clearTimeout(timer));
}

/** For the trace: the backend of the next attempt, if the policy chooses one, and whether it has only one endpoint. */
function whereTo({ retry, selected }: Exchange): { readonly backend?: string; readonly onlyEndpoint?: string } {
  const { backend } = selected;
  const [endpoint, ...others] = backend?.balancer?.endpoints ?? [];
  return {
    ...(retry?.otherBackends === true && backend !== undefined && { backend: backend.key }),
    ...(endpoint !== undefined && others.length === 0 && { onlyEndpoint: endpoint.pool.name }),
  };
}
