import { asError, type ErrorCode, GatewayError } from "../base/errors.ts";
import { httpDate } from "../base/http-date.ts";
import { alignNames } from "../http/h1/names.ts";
import { getHeader, type HttpResponse, type LocalReply } from "../http/message.ts";
import { type CompiledChain, stageName } from "../policies/compile.ts";
import type { Phase } from "../trace/events.ts";
import { type ExchangeState, RESPOND } from "./exchange-state.ts";
import { finish } from "./finish.ts";

/** gRPC status for an HTTP status of the gateway's own (reference 2.4); others are 2, unknown. */
const GRPC_STATUS: Readonly<Record<number, number>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  407: 16,
  429: 14,
  502: 14,
  503: 14,
  504: 14,
};

/**
 * Runs the response side of the policies and sends the head; the body follows by `sendBody`. Throws what a policy throws;
 * the answer to that goes out without policies.
 */
export function respond(
  x: ExchangeState,
  response: HttpResponse,
  length: number,
  rawNames: readonly string[] | null,
): void {
  if (x.phase !== RESPOND) {
    x.phase = RESPOND;
    const route = x.route === undefined ? undefined : x.routePolicies;
    if (route !== undefined && route.response.length > 0) runResponse(x, route, "route", response);
    const backend = x.backend?.policies;
    if (backend !== undefined && backend.response.length > 0) runResponse(x, backend, "backend", response);
    const gateway = x.listener?.policies;
    if (gateway !== undefined && gateway.response.length > 0) runResponse(x, gateway, "gateway", response);
  }
  x.trace?.responseSnapshot("final response", response);
  x.status = response.status;
  x.responded = true;
  const names = rawNames === null ? null : alignNames(response.headers, rawNames);
  x.downstream.sendHead(response, length, names);
}

function runResponse(x: ExchangeState, chain: CompiledChain, phase: Phase, response: HttpResponse): void {
  for (const policy of chain.response) {
    policy.onResponse?.(x, response);
    x.trace?.responseSnapshot(stageName(policy.kind, phase), response);
  }
}

/** Sends a response that the gateway makes itself: an error, a redirect, a direct response. */
export function respondLocally(x: ExchangeState, reply: LocalReply): void {
  if (x.over) return;
  if (x.error === undefined) x.reason = "DirectResponse";
  clearTimeout(x.requestTimer);
  clearTimeout(x.attemptTimer);
  const body = Buffer.from(reply.body, "utf8");
  const response: HttpResponse = { status: reply.status, headers: [...reply.headers] };
  if (reply.status !== 204 && reply.status !== 304) response.headers.push("content-length", String(body.length));
  response.headers.push("date", httpDate());
  x.responseHasBody = body.length > 0;
  // Whoever answers in the place of a backend that was called has given up that call.
  x.trace?.callEnded(null, x.error ?? null);
  x.trace?.responseBody(body, 0, body.length);
  respond(x, response, body.length, null);
  x.responseBytes = body.length;
  x.downstream.sendBody(body, 0, body.length);
  x.downstream.sendEnd([]);
  finish(x);
}

/** Answers with an error of the table; `detail` is shown to the client. */
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
  respondLocally(x, errorReply(x, known));
}

/** The response to an error: text for HTTP; for gRPC 200 with the status in `grpc-status` and no body. */
function errorReply(x: ExchangeState, error: GatewayError): LocalReply {
  const contentType = getHeader(x.request.headers, "content-type") ?? "";
  if (contentType !== "application/grpc" && !contentType.startsWith("application/grpc+"))
    return { status: error.status, headers: ["content-type", "text/plain"], body: error.message };
  const status = error.code === "TG_NO_BACKENDS" ? 14 : (GRPC_STATUS[error.status] ?? 2);
  const message = error.message.replace(/[\0-\x20%\x7f-￿]/g, (char) => encodeURIComponent(char));
  return {
    status: 200,
    headers: ["content-type", "application/grpc", "grpc-status", String(status), "grpc-message", message],
    body: "",
  };
}
