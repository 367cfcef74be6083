import { asError, ERRORS, type ErrorAnswer, type ErrorCode, GatewayError } from "../base/errors.ts";
import { httpDate } from "../base/http-date.ts";
import { grpcError, grpcStatusOf, isGrpc } from "../http/grpc-reply.ts";
import { alignNames } from "../http/h1/names.ts";
import type { HttpResponse, LocalReply } from "../http/message.ts";
import { TUNNEL } from "../http/stream.ts";
import { type CompiledChain, NO_POLICIES, stageName } from "../policies/compile.ts";
import type { CompiledPolicy } from "../policies/types.ts";
import type { Phase } from "../trace/events.ts";
import { ResponseBody } from "./body/response-body.ts";
import { type ExchangeState, RESPOND } from "./exchange-state.ts";
import { endUpstream } from "./finish.ts";

/**
 * Runs the response side of the policies and sends the head; the body follows by `sendBody`. Throws what a policy throws;
 * the answer to that goes out without policies. While a policy waits, or when one works on the body, the body is held.
 */
export function respond(
  exchange: ExchangeState,
  response: HttpResponse,
  length: number,
  rawNames: readonly string[] | null,
): void {
  if (exchange.phase !== RESPOND) {
    exchange.phase = RESPOND;
    const waiting = runResponsePolicies(exchange, response, length);
    if (waiting !== undefined) {
      exchange.holdResponse(length);
      waiting.then(
        () => release(exchange, response, rawNames),
        (error: unknown) => {
          exchange.abandonAttempt({ countFailure: false });
          failWith(exchange, error);
        },
      );
      return;
    }
  }
  if (exchange.heldResponse !== undefined) release(exchange, response, rawNames);
  else sendHead(exchange, response, length, rawNames);
}

function sendHead(
  exchange: ExchangeState,
  response: HttpResponse,
  length: number,
  rawNames: readonly string[] | null,
): void {
  exchange.response = response;
  exchange.applyEdits(response);
  exchange.trace?.responseSnapshot("final response", response);
  exchange.status = response.status;
  exchange.responded = true;
  const names = rawNames === null ? null : alignNames(response.headers, rawNames);
  exchange.downstream.sendHead(response, length, names);
}

/** Sends a response whose body was held, and what is there of the body. */
function release(exchange: ExchangeState, response: HttpResponse, rawNames: readonly string[] | null): void {
  const body = exchange.heldResponse;
  if (exchange.closed || exchange.responded || body === undefined) return;
  exchange.heldResponse = undefined;
  const { held, replaced } = body;
  exchange.responseHasBody = held.size > 0 || !held.ended;
  sendHead(exchange, response, body.length, rawNames);
  if (body.length === TUNNEL) exchange.openTunnel();
  let more = true;
  for (const chunk of held.chunks) {
    exchange.noteResponseBody(chunk, 0, chunk.length);
    more = exchange.downstream.sendBody(chunk, 0, chunk.length);
  }
  if (replaced || held.ended) {
    exchange.sendEnd(replaced ? [] : held.trailers);
    // Nobody reads what a policy has replaced.
    if (!held.ended) exchange.dropUpstream();
    endUpstream(exchange);
    return;
  }
  held.clear();
  if (body.staged) flowOn(exchange, body);
  if (exchange.downstream.flush() && more) exchange.upstream?.resume();
}

/** What stages still give goes straight to the client. */
function flowOn(exchange: ExchangeState, body: ResponseBody): void {
  exchange.heldResponse = body;
  body.flowTo({
    write(bytes) {
      if (exchange.closed) return true;
      exchange.noteResponseBody(bytes, 0, bytes.length);
      return exchange.downstream.sendBody(bytes, 0, bytes.length) && exchange.downstream.flush();
    },
    end(trailers) {
      if (exchange.closed) return;
      exchange.sendEnd(trailers);
      endUpstream(exchange);
    },
  });
}

/** One policy of one phase, waiting for its turn. */
interface ResponseStep {
  readonly policy: CompiledPolicy;
  readonly phase: Phase;
}

/** The chains in the order route, backend, gateway (reference 4.1, step 11). */
function runResponsePolicies(
  exchange: ExchangeState,
  response: HttpResponse,
  length: number,
): undefined | Promise<void> {
  const route = exchange.route === undefined ? NO_POLICIES : exchange.routePolicies;
  const backend = exchange.backend?.policies ?? NO_POLICIES;
  const gateway = exchange.listener?.policies ?? NO_POLICIES;
  if (route.response.length + backend.response.length + gateway.response.length === 0) return undefined;
  exchange.response = response;
  exchange.announced = length;
  const steps = [
    ...stepsOf(exchange, route, "route"),
    ...stepsOf(exchange, backend, "backend"),
    ...stepsOf(exchange, gateway, "gateway"),
  ];
  return runSteps(exchange, steps, 0, response);
}

function stepsOf(exchange: ExchangeState, chain: CompiledChain, phase: Phase): ResponseStep[] {
  const fromUpstream = exchange.answeredAt !== 0;
  return chain.response
    .filter((policy) => fromUpstream || policy.upstreamOnly !== true)
    .map((policy) => ({ policy, phase }));
}

function runSteps(
  exchange: ExchangeState,
  steps: readonly ResponseStep[],
  from: number,
  response: HttpResponse,
): undefined | Promise<void> {
  for (let i = from; i < steps.length; i++) {
    const { policy, phase } = steps[i] as ResponseStep;
    const outcome = policy.onResponse?.(exchange, response);
    if (outcome instanceof Promise)
      return outcome.then(() => {
        if (exchange.closed) return undefined;
        exchange.trace?.responseSnapshot(stageName(policy.kind, phase), response);
        return runSteps(exchange, steps, i + 1, response);
      });
    exchange.trace?.responseSnapshot(stageName(policy.kind, phase), response);
  }
  return undefined;
}

/** Sends a response that the gateway makes itself: an error, a redirect, a direct response. */
export function respondLocally(exchange: ExchangeState, reply: LocalReply): void {
  if (exchange.closed) return;
  if (exchange.error === undefined) exchange.reason = reply.reason ?? "DirectResponse";
  clearTimeout(exchange.requestTimer);
  clearTimeout(exchange.attemptTimer);
  const body = typeof reply.body === "string" ? Buffer.from(reply.body, "utf8") : Buffer.from(reply.body);
  const response: HttpResponse = { status: reply.status, headers: [...reply.headers] };
  if (reply.status !== 204 && reply.status !== 304) response.headers.push("content-length", String(body.length));
  response.headers.push("date", httpDate());
  // Whoever answers in the place of a backend that was called has given up that call.
  exchange.callEnded(null, exchange.error ?? null);
  exchange.answeredAt = 0;
  exchange.heldResponse = new ResponseBody(body.length, response, undefined);
  exchange.heldResponse.receive(body, 0, body.length);
  exchange.heldResponse.end([]);
  respond(exchange, response, body.length, null);
}

/** Answers with an error of the table; `detail` goes to the log and the trace. */
export function fail(exchange: ExchangeState, code: ErrorCode, detail?: string): void {
  failWith(exchange, new GatewayError(code, detail));
}

/** Answers with what was thrown; anything but a GatewayError is a defect. */
export function failWith(exchange: ExchangeState, error: unknown): void {
  if (exchange.closed || exchange.responded) return;
  const known = error instanceof GatewayError ? error : new GatewayError("TG_INTERNAL", undefined, error);
  const { code, message, cause } = known;
  if (code === "TG_INTERNAL")
    exchange.services.log.error("a request failed inside the gateway", { error: asError(error) });
  exchange.blame(code, code !== "TG_INTERNAL" && cause instanceof Error ? `${message}: ${cause.message}` : message);
  respondLocally(exchange, errorReply(exchange, known.answer));
}

/** The response to an error: text for HTTP; for gRPC 200 with the status in `grpc-status` and no body. Either has the error's headers. */
function errorReply(exchange: ExchangeState, { code, status, headers }: ErrorAnswer): LocalReply {
  const { message } = ERRORS[code];
  if (!isGrpc(exchange.request.headers))
    return { status, headers: ["content-type", "text/plain", ...headers], body: message };
  const grpcStatus = code === "TG_NO_BACKENDS" ? 14 : grpcStatusOf(status);
  return { status: 200, headers: [...grpcError(grpcStatus, message), ...headers], body: "" };
}
