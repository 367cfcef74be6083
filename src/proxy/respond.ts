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
  x: ExchangeState,
  response: HttpResponse,
  length: number,
  rawNames: readonly string[] | null,
): void {
  if (x.phase !== RESPOND) {
    x.phase = RESPOND;
    const waiting = runResponsePolicies(x, response, length);
    if (waiting !== undefined) {
      x.holdResponse(length);
      waiting.then(
        () => release(x, response, rawNames),
        (error: unknown) => {
          x.giveUpCall("nobody");
          failWith(x, error);
        },
      );
      return;
    }
  }
  if (x.heldResponse !== undefined) release(x, response, rawNames);
  else sendHead(x, response, length, rawNames);
}

function sendHead(x: ExchangeState, response: HttpResponse, length: number, rawNames: readonly string[] | null): void {
  x.response = response;
  x.applyEdits(response);
  x.trace?.responseSnapshot("final response", response);
  x.status = response.status;
  x.responded = true;
  const names = rawNames === null ? null : alignNames(response.headers, rawNames);
  x.downstream.sendHead(response, length, names);
}

/** Sends a response whose body was held, and what is there of the body. */
function release(x: ExchangeState, response: HttpResponse, rawNames: readonly string[] | null): void {
  const body = x.heldResponse;
  if (x.over || x.responded || body === undefined) return;
  x.heldResponse = undefined;
  const { held, replaced } = body;
  x.responseHasBody = held.size > 0 || !held.ended;
  sendHead(x, response, body.length, rawNames);
  if (body.length === TUNNEL) x.openTunnel();
  let more = true;
  for (const chunk of held.chunks) {
    x.noteResponseBody(chunk, 0, chunk.length);
    more = x.downstream.sendBody(chunk, 0, chunk.length);
  }
  if (replaced || held.ended) {
    x.sendEnd(replaced ? [] : held.trailers);
    // Nobody reads what a policy has replaced.
    if (!held.ended) x.dropUpstream();
    endUpstream(x);
    return;
  }
  held.clear();
  if (body.staged) flowOn(x, body);
  if (x.downstream.flush() && more) x.upstream?.resume();
}

/** What stages still give goes straight to the client. */
function flowOn(x: ExchangeState, body: ResponseBody): void {
  x.heldResponse = body;
  body.flowTo({
    write(bytes) {
      if (x.over) return true;
      x.noteResponseBody(bytes, 0, bytes.length);
      return x.downstream.sendBody(bytes, 0, bytes.length) && x.downstream.flush();
    },
    end(trailers) {
      if (x.over) return;
      x.sendEnd(trailers);
      endUpstream(x);
    },
  });
}

/** One policy of one phase, waiting for its turn. */
interface ResponseStep {
  readonly policy: CompiledPolicy;
  readonly phase: Phase;
}

/** The chains in the order route, backend, gateway (reference 4.1, step 11). */
function runResponsePolicies(x: ExchangeState, response: HttpResponse, length: number): undefined | Promise<void> {
  const route = x.route === undefined ? NO_POLICIES : x.routePolicies;
  const backend = x.backend?.policies ?? NO_POLICIES;
  const gateway = x.listener?.policies ?? NO_POLICIES;
  if (route.response.length + backend.response.length + gateway.response.length === 0) return undefined;
  x.response = response;
  x.announced = length;
  const steps = [...stepsOf(x, route, "route"), ...stepsOf(x, backend, "backend"), ...stepsOf(x, gateway, "gateway")];
  return runSteps(x, steps, 0, response);
}

function stepsOf(x: ExchangeState, chain: CompiledChain, phase: Phase): ResponseStep[] {
  const fromUpstream = x.answeredAt !== 0;
  return chain.response
    .filter((policy) => fromUpstream || policy.upstreamOnly !== true)
    .map((policy) => ({ policy, phase }));
}

function runSteps(
  x: ExchangeState,
  steps: readonly ResponseStep[],
  from: number,
  response: HttpResponse,
): undefined | Promise<void> {
  for (let i = from; i < steps.length; i++) {
    const { policy, phase } = steps[i] as ResponseStep;
    const outcome = policy.onResponse?.(x, response);
    if (outcome instanceof Promise)
      return outcome.then(() => {
        if (x.over) return undefined;
        x.trace?.responseSnapshot(stageName(policy.kind, phase), response);
        return runSteps(x, steps, i + 1, response);
      });
    x.trace?.responseSnapshot(stageName(policy.kind, phase), response);
  }
  return undefined;
}

/** Sends a response that the gateway makes itself: an error, a redirect, a direct response. */
export function respondLocally(x: ExchangeState, reply: LocalReply): void {
  if (x.over) return;
  if (x.error === undefined) x.reason = reply.reason ?? "DirectResponse";
  clearTimeout(x.requestTimer);
  clearTimeout(x.attemptTimer);
  const body = typeof reply.body === "string" ? Buffer.from(reply.body, "utf8") : Buffer.from(reply.body);
  const response: HttpResponse = { status: reply.status, headers: [...reply.headers] };
  if (reply.status !== 204 && reply.status !== 304) response.headers.push("content-length", String(body.length));
  response.headers.push("date", httpDate());
  // Whoever answers in the place of a backend that was called has given up that call.
  x.callEnded(null, x.error ?? null);
  x.answeredAt = 0;
  x.heldResponse = new ResponseBody(body.length, response, undefined);
  x.heldResponse.receive(body, 0, body.length);
  x.heldResponse.end([]);
  respond(x, response, body.length, null);
}

/** Answers with an error of the table; `detail` goes to the log and the trace. */
export function fail(x: ExchangeState, code: ErrorCode, detail?: string): void {
  failWith(x, new GatewayError(code, detail));
}

/** Answers with what was thrown; anything but a GatewayError is a defect. */
export function failWith(x: ExchangeState, error: unknown): void {
  if (x.over || x.responded) return;
  const known = error instanceof GatewayError ? error : new GatewayError("TG_INTERNAL", undefined, error);
  const { code, message, cause } = known;
  if (code === "TG_INTERNAL") x.services.log.error("a request failed inside the gateway", { error: asError(error) });
  x.blame(code, code !== "TG_INTERNAL" && cause instanceof Error ? `${message}: ${cause.message}` : message);
  respondLocally(x, errorReply(x, known.answer));
}

/** The response to an error: text for HTTP; for gRPC 200 with the status in `grpc-status` and no body. Either has the error's headers. */
function errorReply(x: ExchangeState, { code, status, headers }: ErrorAnswer): LocalReply {
  const { message } = ERRORS[code];
  if (!isGrpc(x.request.headers)) return { status, headers: ["content-type", "text/plain", ...headers], body: message };
  const grpcStatus = code === "TG_NO_BACKENDS" ? 14 : grpcStatusOf(status);
  return { status: 200, headers: [...grpcError(grpcStatus, message), ...headers], body: "" };
}
