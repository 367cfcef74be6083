/**
 * The life of a request, from top to bottom; docs/lifecycle.md describes the same phases with every error exit. A phase returns
 * undefined to continue, a reply to leave the path, or `WAIT` (or a promise) to wait for the network or a policy.
 * `bind-server.ts` opens an exchange for each request. What comes from sockets and timers ends the current phase, see `endPhase`.
 */
import { asError, GatewayError } from "../../base/errors.ts";
import { isGrpc } from "../../http/grpc-reply.ts";
import { isLoop, MAX_HOPS } from "../../http/loop.ts";
import type { HttpRequest, LocalReply } from "../../http/message/message.ts";
import type { Downstream } from "../../http/stream.ts";
import type { CompiledBind } from "../compile/compiled.ts";
import { Exchange, type Lifecycle } from "../exchange/exchange.ts";
import {
  ANSWERED,
  AttemptFailed,
  type AttemptOutcome,
  GONE,
  type PhaseResult,
  Retry,
  WAIT,
} from "../exchange/phase-result.ts";
import { dropImitations } from "../fields/client-fields.ts";
import type { Services } from "../services/services.ts";
import { attempt } from "./attempt.ts";
import { finish } from "./finish.ts";
import { matchRoute } from "./match-route.ts";
import { type Answering, answerInstead, blame, respond } from "./respond.ts";
import { type Attempted, afterAttempt } from "./retry.ts";
import { backendPolicies, gatewayPolicies, lastWords, responsePolicies, routePolicies } from "./run-policies.ts";
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
  { name: "select-listener", run: selectListener },
  { name: "gateway-policies", run: gatewayPolicies },
  { name: "match-route", run: matchRoute },
  { name: "route-policies", run: routePolicies },
  // Retries come back here, see `backOff`.
  { name: "select-backend", run: selectBackend },
  { name: "backend-policies", run: backendPolicies },
  // Waits for the response's head; `afterAttempt` decides about a retry.
  { name: "attempt", run: attempt },
  // Errors and replies of policies come in here, see `replaceResponse`.
  { name: "response-policies", run: responsePolicies },
  // Waits for the end of the response's body.
  { name: "respond", run: respond },
  { name: "finish", run: finish },
];

// Where the loop does not go on with the next phase; the names above are what documentation and the task dump show.
const ROUTE_POLICIES = PHASES.findIndex(({ name }) => name === "route-policies");
const ATTEMPT = PHASES.findIndex(({ name }) => name === "attempt");
const RESPONSE_POLICIES = ATTEMPT + 1;
const RESPOND = RESPONSE_POLICIES + 1;
const FINISH = RESPOND + 1;

/** Where an exchange is; an event ends its phase. */
type AtPhase = Pick<Exchange, "endPhase" | "phase">;

const LIFECYCLE: Lifecycle = { phases: PHASES, endPhase };

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
 * The loop over the phases, and over the attempts at the backend: acts on the result of the current phase, then runs the next one. It is
 * synchronous until a phase waits, because most requests wait for the upstream only, and a promise for each phase would cost a turn of
 * the microtask queue. Calls nest: an event that comes while a phase runs ends that phase here, and runs the next ones. Only this loop
 * has the whole exchange; each phase, and what follows one, takes the parts that it touches.
 */
function endPhase(exchange: Exchange, ended: PhaseResult): void {
  let result = ended;
  while (!exchange.closed) {
    if (result === ANSWERED || result instanceof AttemptFailed) result = follow(exchange, result);
    if (result === undefined) exchange.phase++;
    else if (result === WAIT) return;
    else if (result === GONE) exchange.phase = FINISH;
    else if (result instanceof Promise) {
      waitFor(exchange, result);
      return;
    } else if (result instanceof Retry) {
      backOff(exchange, result);
      return;
    } else if (!exchange.responseSide.started) exchange.phase = replaceResponse(exchange, result);
    else {
      result = cutResponse(exchange, result);
      continue;
    }
    const { phase } = exchange;
    try {
      result = (PHASES[phase] as PhaseSpec).run(exchange);
      // An event has ended the phase meanwhile: a body stage may have responded, for example.
      if (exchange.phase !== phase) return;
    } catch (error) {
      result = asGatewayError(error, exchange.services.log);
    }
  }
}

/** Waits for policies. The request's deadline starts here for policies before the attempt; the attempt has its own timers. */
function waitFor(
  exchange: AtPhase & Pick<Exchange, "deadlines" | "services">,
  result: Promise<undefined | LocalReply>,
): void {
  const { phase } = exchange;
  if (phase < ATTEMPT) exchange.deadlines.start();
  // The deadline may have passed, or the client may have left meanwhile.
  const end = (outcome: PhaseResult): void => {
    if (exchange.phase === phase) exchange.endPhase(outcome);
  };
  result.then(end, (error: unknown) => end(asGatewayError(error, exchange.services.log)));
}

// ── after an attempt ──

function follow(exchange: Attempted & AtPhase, outcome: AttemptOutcome): undefined | GatewayError | Retry {
  // Once the response's head has been passed on, the rest of the response cannot come from elsewhere.
  return exchange.phase > ATTEMPT && outcome !== ANSWERED ? outcome.error : afterAttempt(exchange, outcome);
}

/** Drops what the attempt has brought, and goes back to select-backend after a while. */
function backOff(
  exchange: AtPhase & Pick<Exchange, "call" | "deadlines" | "onClose" | "responseSide">,
  { afterMs }: Retry,
): void {
  exchange.responseSide.discard();
  exchange.call?.discardResponse();
  // The response may have stopped it.
  exchange.deadlines.start();
  const timer = setTimeout(() => {
    // The deadline may have passed meanwhile.
    if (exchange.phase !== ATTEMPT) return;
    exchange.phase = ROUTE_POLICIES;
    exchange.endPhase(undefined);
  }, afterMs);
  exchange.onClose(() => clearTimeout(timer));
}

// ── error exits ──

/**
 * The error or reply becomes the response and passes through the response policies, so errors get CORS and security headers too.
 * Those of a response policy only get their page, and skip the other policies. Returns the phase that follows.
 */
function replaceResponse(
  exchange: Answering & AtPhase & Pick<Exchange, "policyView" | "selected">,
  answer: GatewayError | LocalReply,
): number {
  exchange.call?.abandon();
  answerInstead(exchange, answer);
  if (exchange.phase < RESPONSE_POLICIES) return RESPONSE_POLICIES;
  lastWords(exchange);
  return RESPOND;
}

/**
 * The response's head has been sent. A gRPC call ends with a status; for other responses, only closing the connection shows the client
 * that the body is incomplete.
 */
function cutResponse(
  exchange: Answering & Pick<Exchange, "downstream">,
  answer: GatewayError | LocalReply,
): typeof WAIT | typeof GONE {
  exchange.call?.abandon();
  if (answer instanceof GatewayError) {
    blame(exchange, answer);
    if (exchange.responseSide.endGrpc(answer.code)) return WAIT;
  } else exchange.result.cut();
  exchange.downstream.abort();
  return GONE;
}

/** A defect is logged with its stack; the client and the access log get the text of TG_INTERNAL only. */
function asGatewayError(error: unknown, log: Services["log"]): GatewayError {
  const known = error instanceof GatewayError ? error : new GatewayError("TG_INTERNAL", undefined, error);
  if (known.code === "TG_INTERNAL") log.error("a request failed inside the gateway", { error: asError(error) });
  return known;
}

// ── the first phase ──

/** If no route answers this request, the log says why it has a response. */
async function validated(
  answer: Promise<undefined | LocalReply>,
  { downstream, request, services, trace }: Pick<Exchange, "downstream" | "request" | "services" | "trace">,
): Promise<undefined | LocalReply> {
  const reply = await answer;
  trace?.acmeChallenge(reply === undefined ? "unknown" : "answered");
  if (reply !== undefined)
    services.log.info("a validation by http-01 was answered", {
      name: request.authority,
      from: downstream.connection.name,
    });
  return reply;
}

/** Checks what the protocol engine cannot check, and adds the fields about the request's origin. */
function accept(
  exchange: Pick<
    Exchange,
    "bind" | "deadlines" | "downstream" | "grpc" | "request" | "requestId" | "services" | "trace"
  >,
): undefined | Promise<undefined | LocalReply> {
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
  if (method !== "POST" || !isGrpc(request.headers)) {
    const answer = bind.challenges?.answerHttp(method, request.path);
    return answer === undefined ? undefined : validated(answer, exchange);
  }
  exchange.grpc = "sent";
  exchange.deadlines.startGrpc();
  return undefined;
}
