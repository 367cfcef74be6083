/**
 * The life of a request, from top to bottom; docs/lifecycle.md describes the same phases with every error exit. A phase returns
 * undefined to continue, a reply to leave the path, or `WAIT` (or a promise) to wait for the network or a policy.
 * `bind-server.ts` opens an exchange for each request; its events come back here through `LIFECYCLE`.
 */
import { asError, GatewayError } from "../../base/errors.ts";
import { isGrpc } from "../../http/grpc-reply.ts";
import { isLoop, MAX_HOPS } from "../../http/loop.ts";
import type { HttpRequest, LocalReply } from "../../http/message/message.ts";
import type { Downstream } from "../../http/stream.ts";
import type { CompiledBind } from "../compile/compiled.ts";
import { Exchange, type Lifecycle, type PhaseResult, WAIT } from "../exchange/exchange.ts";
import { dropImitations } from "../fields/client-fields.ts";
import type { Services } from "../services/services.ts";
import { attempt } from "./attempt.ts";
import { finish } from "./finish.ts";
import { matchRoute } from "./match-route.ts";
import { answerInstead, endGrpc, respond } from "./respond.ts";
import { afterBackoff, prepareAttempt, reasonToRetry, retryAllowed } from "./retry.ts";
import { backendPolicies, gatewayPolicies, responsePolicies, routePolicies } from "./run-policies.ts";
import { selectBackend } from "./select-backend.ts";
import { selectListener } from "./select-listener.ts";

/** A phase may throw a GatewayError, which is an error exit; anything else it throws is a defect and becomes TG_INTERNAL. */
interface PhaseSpec {
  readonly name: string;
  readonly run: (exchange: Exchange) => PhaseResult;
}

export const PHASES: readonly PhaseSpec[] = [
  // The protocol engine has read, checked and normalized the head before an exchange exists.
  { name: "accept", run: accept },
  { name: "select-listener", run: chooseListener },
  { name: "gateway-policies", run: gatewayPolicies },
  { name: "match-route", run: matchRoute },
  { name: "route-policies", run: routePolicies },
  // Retries come back here: see `attemptAnswered` and `attemptFailed`.
  { name: "select-backend", run: selectBackend },
  { name: "backend-policies", run: backendPolicies },
  // Waits for the response's head.
  { name: "attempt", run: attempt },
  // Errors and replies of policies come in here: see `exit`.
  { name: "response-policies", run: responsePolicies },
  // Waits for the end of the response's body.
  { name: "respond", run: respond },
  { name: "finish", run: finish },
];

// Where events enter; the names above are what documentation and the task dump show.
const SELECT_BACKEND = PHASES.findIndex(({ name }) => name === "select-backend");
const BACKEND_POLICIES = SELECT_BACKEND + 1;
const ATTEMPT = BACKEND_POLICIES + 1;
const RESPONSE_POLICIES = ATTEMPT + 1;
const RESPOND = RESPONSE_POLICIES + 1;
const FINISH = RESPOND + 1;

const LIFECYCLE: Lifecycle = {
  phases: PHASES,
  run,
  resume,
  attemptAnswered,
  attemptFailed,
  exit,
  endGrpc,
  fail,
  end,
};

/** Opens the exchange of a request; `start` begins its first phase. */
export function openExchange(
  downstream: Downstream,
  request: HttpRequest,
  bind: CompiledBind,
  services: Services,
): Exchange {
  return new Exchange(downstream, request, bind, services, LIFECYCLE);
}

/**
 * The loop over the phases. It is synchronous until a phase waits, because most requests wait for the upstream only, and a promise
 * for each phase would cost a turn of the microtask queue. Calls nest: an event that ends a phase runs the next ones.
 */
function run(exchange: Exchange): void {
  while (exchange.phase < PHASES.length) {
    const { phase } = exchange;
    let result: PhaseResult;
    try {
      result = (PHASES[phase] as PhaseSpec).run(exchange);
    } catch (error) {
      fail(exchange, error);
      return;
    }
    // A body stage may have responded in the meantime.
    if (result === WAIT || exchange.phase !== phase) return;
    if (result instanceof Promise) {
      waitFor(exchange, result);
      return;
    }
    if (result !== undefined) {
      exit(exchange, result);
      return;
    }
    exchange.phase++;
  }
}

/** Waits for policies. The request's deadline starts here for policies before the attempt; the attempt has its own timers. */
function waitFor(exchange: Exchange, result: Promise<undefined | LocalReply>): void {
  const { phase } = exchange;
  if (phase < ATTEMPT) exchange.startDeadline();
  result.then(
    (reply) => {
      // The deadline may have passed, or the client may have left meanwhile.
      if (exchange.phase !== phase) return;
      if (reply === undefined) resume(exchange);
      else exit(exchange, reply);
    },
    (error: unknown) => {
      if (exchange.phase === phase) fail(exchange, error);
    },
  );
}

function resume(exchange: Exchange): void {
  if (exchange.closed) return;
  exchange.phase++;
  run(exchange);
}

// ── retries: from the end of an attempt back to the backend, which may be another one ──

function attemptAnswered(exchange: Exchange): void {
  const why = exchange.retry === undefined ? undefined : reasonToRetry(exchange);
  if (why === undefined) resume(exchange);
  else {
    exchange.responseSide.discard();
    exchange.call?.discardResponse();
    retry(exchange, why);
  }
}

function attemptFailed(exchange: Exchange, error: GatewayError, why: string): void {
  // Once the response's head has been passed on, the rest of the response cannot come from elsewhere.
  if (exchange.phase === ATTEMPT && retryAllowed(exchange)) {
    exchange.responseSide.discard();
    retry(exchange, why);
  } else exit(exchange, error);
}

function retry(exchange: Exchange, why: string): void {
  afterBackoff(exchange, why, () => {
    prepareAttempt(exchange);
    exchange.phase = SELECT_BACKEND;
    run(exchange);
  });
}

// ── error exits ──

/**
 * Before the response's head is sent, the error or reply becomes the response and passes through the response policies, so errors get
 * CORS and security headers too. After it, a gRPC call ends with a status; for other responses, only closing the connection shows
 * the client that the body is incomplete.
 */
function exit(exchange: Exchange, answer: GatewayError | LocalReply): void {
  if (exchange.closed) return;
  exchange.call?.abandon({ countFailure: false });
  if (exchange.responseSide.started) {
    if (answer instanceof GatewayError) {
      exchange.blame(answer.code, answer.message);
      if (endGrpc(exchange, answer.code)) return;
    } else exchange.result.error ??= "a policy aborted the response";
    exchange.abort();
    return;
  }
  answerInstead(exchange, answer);
  // A reply or error of a response policy does not pass through the response policies again.
  exchange.phase = exchange.phase < RESPONSE_POLICIES ? RESPONSE_POLICIES : RESPOND;
  run(exchange);
}

/** A defect is logged with its stack; the client and the access log get the text of TG_INTERNAL only. */
function fail(exchange: Exchange, error: unknown): void {
  const known = error instanceof GatewayError ? error : new GatewayError("TG_INTERNAL", undefined, error);
  if (known.code === "TG_INTERNAL")
    exchange.services.log.error("a request failed inside the gateway", { error: asError(error) });
  exit(exchange, known);
}

/** The client is gone, or a defect has cut the response: there is nothing to send. */
function end(exchange: Exchange): void {
  if (exchange.closed) return;
  exchange.phase = FINISH;
  run(exchange);
}

// ── phases without a separate file ──

/** Checks what the protocol engine cannot check, and adds the fields about the request's origin. */
function accept(exchange: Exchange): undefined {
  const { request, downstream, bind, services } = exchange;
  const { method } = request;
  exchange.trace?.requestSnapshot("initial request");
  services.overload.admitRequest();
  if (isLoop(downstream.loop)) throw new GatewayError("TG_LOOP", `the request has passed ${MAX_HOPS} gateways`);
  // TRACE would send the request's own fields back (RFC 9110 9.3.8); CONNECT opens the way to the backends' ports.
  if (method === "TRACE" || (method === "CONNECT" && bind.frontend.connect !== "route"))
    throw new GatewayError("TG_METHOD_NOT_ALLOWED");
  if (method === "CONNECT" && downstream.requestLength !== 0)
    throw new GatewayError("TG_INVALID_REQUEST", "CONNECT has no body");
  const { ownFields } = bind.policies;
  if (downstream.hasUnderscore || ownFields.hasUnderscore) dropImitations(request.headers, ownFields);
  bind.forwarding.apply(request, downstream, exchange.requestId);
  // gRPC calls are always POST.
  if (method !== "POST" || !isGrpc(request.headers)) return;
  exchange.grpc = true;
  exchange.startGrpcDeadline();
}

/** Begins the span even if no listener matches: such requests may be sampled too. */
function chooseListener(exchange: Exchange): undefined {
  try {
    return selectListener(exchange);
  } finally {
    exchange.span = exchange.bind.tracing?.begin(exchange);
  }
}
