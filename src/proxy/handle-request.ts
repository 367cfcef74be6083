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
  readonly run: (x: CallingExchange) => Outcome;
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
export function handleRequest(x: CallingExchange): void {
  try {
    while (x.phase < RESPOND) {
      const outcome = (PHASES[x.phase] as PhaseSpec).run(x);
      if (outcome === PENDING) return;
      if (outcome instanceof Promise) {
        startRequestTimer(x);
        outcome.then(
          (reply) => resume(x, reply),
          (error: unknown) => failWith(x, error),
        );
        return;
      }
      if (outcome !== undefined) {
        respondLocally(x, outcome);
        return;
      }
      x.phase++;
    }
  } catch (error) {
    failWith(x, error);
  }
}

function resume(x: CallingExchange, reply: LocalReply | undefined): void {
  // A stage of the body may have answered in the meantime.
  if (x.over || x.phase >= RESPOND) return;
  if (reply !== undefined) respondLocally(x, reply);
  else {
    x.phase++;
    handleRequest(x);
  }
}

function accept(x: CallingExchange): Outcome {
  const { method } = x.request;
  x.trace?.requestSnapshot("initial request");
  // TRACE would send the request's own fields back (RFC 9110 9.3.8); CONNECT opens the way to the backends' ports.
  if (method === "TRACE" || (method === "CONNECT" && x.bind.frontend.connect !== "route"))
    throw new GatewayError("TG_METHOD_NOT_ALLOWED");
  if (method === "CONNECT" && x.downstream.requestLength !== 0)
    throw new GatewayError("TG_INVALID_REQUEST", "CONNECT has no body");
  const { ownFields } = x.bind.policies;
  if (x.downstream.hasUnderscore || ownFields.hasUnderscore) dropImitations(x.request.headers, ownFields);
  x.bind.forwarding.apply(x.request, x.downstream, x.requestId);
  return undefined;
}

/** Requests that reach no listener may be recorded as well. */
function chooseListener(x: CallingExchange): Outcome {
  try {
    return selectListener(x);
  } finally {
    x.span = x.bind.tracing?.begin(x);
  }
}

function gatewayPolicies(x: CallingExchange): Outcome {
  const chain = x.listener?.policies;
  if (chain === undefined) return undefined;
  x.trace?.policySelection("gateway", chain.effective);
  return runChain(x, chain, "gateway", "gateway policies");
}

function routePolicies(x: CallingExchange): Outcome {
  const chain = x.routePolicies;
  x.trace?.policySelection("route", chain.effective);
  const { unlessCors } = x.findings;
  if (unlessCors !== undefined && !chain.request.some(({ kind }) => kind === "cors")) throw unlessCors;
  return runChain(x, chain, "route", "route policies");
}

function backendPolicies(x: CallingExchange): Outcome {
  const chain = x.backend?.policies;
  if (x.retry !== undefined) rememberRequest(x);
  if (chain === undefined) return undefined;
  x.trace?.policySelection("backend", chain.effective);
  return runChain(x, chain, "backend", undefined);
}

function callBackend(x: CallingExchange): Outcome {
  attempt(x, false);
  return PENDING;
}
