import { GatewayError } from "../base/errors.ts";
import type { LocalReply } from "../http/message.ts";
import { attempt, startRequestTimer } from "./attempt.ts";
import { dropImitations } from "./client-fields.ts";
import { type CallingExchange, RESPOND } from "./exchange-state.ts";
import { matchRoute } from "./match-route.ts";
import { failWith, respondLocally } from "./respond.ts";
import { rememberRequest } from "./retry.ts";
import { runChain } from "./run-chain.ts";
import { selectBackend } from "./select-backend.ts";
import { selectListener } from "./select-listener.ts";

/** undefined = go on with the next phase; a reply ends the request side; PENDING = an event will carry the exchange on. */
type Outcome = undefined | LocalReply | typeof PENDING | Promise<undefined | LocalReply>;
const PENDING = Symbol("pending");

interface PhaseSpec {
  readonly name: string;
  readonly run: (exchange: CallingExchange) => Outcome;
}

/** The life of a request, from top to bottom; docs/lifecycle.md draws the same names with every way out. */
export const PHASES: readonly PhaseSpec[] = [
  // The engine has read, checked and normalised the head before an exchange exists.
  { name: "accept", run: accept },
  { name: "select-listener", run: chooseListener },
  { name: "gateway-policies", run: gatewayPolicies },
  { name: "match-route", run: matchRoute },
  { name: "route-policies", run: routePolicies },
  { name: "select-backend", run: selectBackend },
  { name: "backend-policies", run: backendPolicies },
  { name: "attempt", run: callBackend },
  // Entered by the upstream's answer or by a reply of the gateway's own: see respond.ts and finish.ts.
  { name: "respond", run: () => PENDING },
  { name: "finish", run: () => PENDING },
];

/** Where another attempt begins: endpoint and backend policies anew. */
export const BACKEND_POLICIES = PHASES.findIndex(({ name }) => name === "backend-policies");

/** Runs the phases; a thrown GatewayError or a reply ends the request side and becomes the response. */
export function handleRequest(exchange: CallingExchange): void {
  try {
    while (exchange.phase < RESPOND) {
      const outcome = (PHASES[exchange.phase] as PhaseSpec).run(exchange);
      if (outcome === PENDING) return;
      if (outcome instanceof Promise) {
        startRequestTimer(exchange);
        outcome.then(
          (reply) => resume(exchange, reply),
          (error: unknown) => failWith(exchange, error),
        );
        return;
      }
      if (outcome !== undefined) {
        respondLocally(exchange, outcome);
        return;
      }
      exchange.phase++;
    }
  } catch (error) {
    failWith(exchange, error);
  }
}

function resume(exchange: CallingExchange, reply: LocalReply | undefined): void {
  // A stage of the body may have answered in the meantime.
  if (exchange.closed || exchange.phase >= RESPOND) return;
  if (reply !== undefined) respondLocally(exchange, reply);
  else {
    exchange.phase++;
    handleRequest(exchange);
  }
}

function accept(exchange: CallingExchange): Outcome {
  const { method } = exchange.request;
  exchange.trace?.requestSnapshot("initial request");
  // TRACE would send the request's own fields back (RFC 9110 9.3.8); CONNECT opens the way to the backends' ports.
  if (method === "TRACE" || (method === "CONNECT" && exchange.bind.frontend.connect !== "route"))
    throw new GatewayError("TG_METHOD_NOT_ALLOWED");
  if (method === "CONNECT" && exchange.downstream.requestLength !== 0)
    throw new GatewayError("TG_INVALID_REQUEST", "CONNECT has no body");
  const { ownFields } = exchange.bind.policies;
  if (exchange.downstream.hasUnderscore || ownFields.hasUnderscore) dropImitations(exchange.request.headers, ownFields);
  exchange.bind.forwarding.apply(exchange.request, exchange.downstream, exchange.requestId);
  return undefined;
}

/** Requests that reach no listener may be recorded as well. */
function chooseListener(exchange: CallingExchange): Outcome {
  try {
    return selectListener(exchange);
  } finally {
    exchange.span = exchange.bind.tracing?.begin(exchange);
  }
}

function gatewayPolicies(exchange: CallingExchange): Outcome {
  const chain = exchange.listener?.policies;
  if (chain === undefined) return undefined;
  exchange.trace?.policySelection("gateway", chain.effective);
  return runChain(exchange, chain, "gateway", "gateway policies");
}

function routePolicies(exchange: CallingExchange): Outcome {
  const chain = exchange.routePolicies;
  exchange.trace?.policySelection("route", chain.effective);
  const { unlessCors } = exchange.requestMetadata;
  if (unlessCors !== undefined && !chain.request.some(({ kind }) => kind === "cors")) throw unlessCors;
  return runChain(exchange, chain, "route", "route policies");
}

function backendPolicies(exchange: CallingExchange): Outcome {
  const chain = exchange.backend?.policies;
  if (exchange.retry !== undefined) rememberRequest(exchange);
  if (chain === undefined) return undefined;
  exchange.trace?.policySelection("backend", chain.effective);
  return runChain(exchange, chain, "backend", undefined);
}

function callBackend(exchange: CallingExchange): Outcome {
  attempt(exchange, false);
  return PENDING;
}
