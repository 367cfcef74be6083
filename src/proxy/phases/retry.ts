/**
 * The `retry` policy (docs/policies/retry.md): whether another attempt follows one that has ended, when, and at which backend.
 * handle-request.ts has the loop. A replay on a new connection because a pooled one was stale is not a retry and happens within an attempt.
 */
import type { GatewayError } from "../../base/errors.ts";
import { grpcStatusIn, isGrpc } from "../../http/grpc-reply.ts";
import { getHeader } from "../../http/message/message.ts";
import { UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { RetryPlan } from "../../policies/contract/types.ts";
import { isIdempotent } from "../../upstream/calls/upstream-call.ts";
import type { CompiledBackend } from "../compile/compiled.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { ANSWERED, type AttemptFailed, type AttemptOutcome, Retry } from "../exchange/phase-result.ts";
import type { ResponseSide } from "../exchange/response-side.ts";
import type { Retries } from "../exchange/retries.ts";
import { RETRY, type RetryReason } from "../trace/decisions.ts";
import { canServe, pick } from "./select-backend.ts";

/** What the decision may read, and `selected`, which it sets. */
export type Attempted = Readonly<
  Pick<
    Exchange,
    | "downstream"
    | "request"
    | "requestSide"
    | "responseSide"
    | "retries"
    | "selected"
    | "services"
    | "trace"
    | "variables"
  >
>;

/** Another attempt is wanted. */
interface Wanted {
  readonly reason: RetryReason;
  /** Milliseconds that the backend requests before it; replaces the backoff. */
  readonly wait?: number | undefined;
}

/**
 * What follows an attempt: undefined = its response is passed on, an error = it goes to the client. For a retry, the backend of the
 * next attempt has been chosen, and its limits count it.
 */
export function afterAttempt(exchange: Attempted, outcome: AttemptOutcome): undefined | GatewayError | Retry {
  const failed = outcome === ANSWERED ? undefined : outcome;
  const { retries } = exchange;
  if (retries === undefined || !repeatable(exchange, retries)) return failed?.error;
  const { plan } = retries;
  const wanted = failed === undefined ? wantedByResponse(exchange, plan) : wantedByFailure(exchange, plan, failed);
  if (wanted === undefined || !takeTurn(exchange, retries)) return failed?.error;
  retries.count++;
  const afterMs = wanted.wait ?? backoff(plan, exchange);
  exchange.trace?.report(RETRY, {
    code: "again",
    attempt: retries.count,
    reason: wanted.reason,
    delay: afterMs,
    ...whereTo(exchange, plan),
  });
  return new Retry(afterMs);
}

/** Whether the policy allows another attempt and the request can be sent again. */
function repeatable({ downstream, request, requestSide }: Attempted, { plan, count }: Retries): boolean {
  if (count >= plan.attempts) return false;
  // The client waits for a tunnel to one backend.
  return downstream.upgrade === "" && request.method !== "CONNECT" && requestSide.repeatable;
}

// ── reasons ──

/** A response is passed on if the condition fails. */
const passOn = (): boolean => false;

function wantedByResponse(exchange: Attempted, { codes, grpcCodes, condition }: RetryPlan): Wanted | undefined {
  const { responseSide } = exchange;
  const status = responseSide.head?.status;
  if (status !== undefined && codes.has(status)) return { reason: { code: "status", status } };
  const grpcStatus = grpcCodes && responseSide.grpcStatus;
  if (grpcStatus !== undefined && grpcCodes?.has(grpcStatus) === true) {
    const wait = pushback(responseSide);
    if (wait === undefined || wait >= 0) return { reason: { code: "grpcStatus", grpcStatus }, wait };
    exchange.trace?.report(RETRY, { code: "pushback" });
    return undefined;
  }
  return condition?.matches(exchange.variables, passOn) === true ? { reason: { code: "condition" } } : undefined;
}

const PUSHBACK = "grpc-retry-pushback-ms";

/** Milliseconds that a gRPC service requests before the next attempt; undefined = it requests nothing, -1 = no further attempt. */
function pushback({ head, trailers }: ResponseSide): number | undefined {
  const text = (head && getHeader(head.headers, PUSHBACK)) ?? getHeader(trailers, PUSHBACK);
  if (text === undefined) return undefined;
  // Malformed values mean the same as negative ones (gRPC proposal A6, "Pushback").
  return /^\d{1,9}$/.test(text) ? Number(text) : -1;
}

function wantedByFailure(
  { request, trace }: Attempted,
  plan: RetryPlan,
  { error, processing }: AttemptFailed,
): Wanted | undefined {
  // The head would be as large again.
  if (error.code === "TG_HEAD_TOO_LARGE") return undefined;
  // Another backend may have an endpoint.
  if (error.code === "TG_NO_HEALTHY_BACKENDS" && !plan.otherBackends) return undefined;
  if (!processing || plan.namesMethods || isIdempotent(request.method))
    return { reason: { code: "failure", error: error.code, detail: error.detail } };
  trace?.report(RETRY, { code: "notIdempotent", method: request.method });
  return undefined;
}

/**
 * Whether a response of `length` bytes, whose head has arrived, may still be retried because of a gRPC status in its trailers. Then its
 * head is held until the first message.
 */
export function mayFailInTrailers(exchange: Attempted, length: number): boolean {
  const { retries, responseSide } = exchange;
  if (retries?.plan.grpcCodes === undefined || length !== UNKNOWN_LENGTH) return false;
  const headers = responseSide.head?.headers ?? [];
  return isGrpc(headers) && grpcStatusIn(headers) === undefined && repeatable(exchange, retries);
}

// ── the next attempt ──

/** Half of the backoff is fixed and half random, so that clients that failed together do not come back together. */
function backoff(plan: RetryPlan, { services }: Attempted): number {
  return plan.backoff === 0 ? 0 : plan.backoff / 2 + services.random() * plan.backoff;
}

/** Chooses the backend of the next attempt. False: its limits allow no further retry. */
function takeTurn(exchange: Attempted, retries: Retries): boolean {
  const { selected } = exchange;
  const next = otherBackend(exchange, retries) ?? selected.backend;
  if (next === undefined || !withinLimits(exchange, next, retries)) return false;
  if (next !== selected.backend) selected.moveTo(next);
  return true;
}

/** A backend of the route that the request has not tried, if the policy allows that and there is one. */
function otherBackend({ selected, services }: Attempted, retries: Retries): CompiledBackend | undefined {
  const { route, backend } = selected;
  if (!retries.plan.otherBackends || route === undefined || backend === undefined) return undefined;
  retries.tried ??= new Set();
  const { tried } = retries;
  tried.add(backend);
  const backends = route.backends.filter((each) => !tried.has(each) && canServe(each));
  const totalWeight = backends.reduce((sum, { weight }) => sum + weight, 0);
  return pick({ key: route.key, label: route.label, backends, totalWeight }, services);
}

/** Whether the limits of the backend allow another retry; if so, it is counted. */
function withinLimits({ trace }: Attempted, { calls, retries: limits }: CompiledBackend, retries: Retries): boolean {
  const isFirst = !retries.isCountedBy(calls);
  if (limits !== undefined) {
    const full = isFirst && !calls.retrying.begin(limits.max);
    if (full || limits.budget?.take(performance.now()) === false) {
      if (isFirst && !full) calls.retrying.end();
      limits.overflows.count++;
      trace?.report(RETRY, full ? { code: "limit", max: limits.max } : { code: "budget" });
      return false;
    }
  }
  if (isFirst) retries.countedAt(limits === undefined ? undefined : calls);
  return true;
}

/** For the trace: the backend of the next attempt, if the policy chooses one, and whether it has only one endpoint. */
function whereTo(
  { selected: { backend } }: Attempted,
  { otherBackends }: RetryPlan,
): { readonly backend?: string; readonly onlyEndpoint?: string } {
  const [endpoint, ...others] = backend?.balancer?.endpoints ?? [];
  return {
    ...(otherBackends && backend !== undefined && { backend: backend.key }),
    ...(endpoint !== undefined && others.length === 0 && { onlyEndpoint: endpoint.pool.name }),
  };
}
