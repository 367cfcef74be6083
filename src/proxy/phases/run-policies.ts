/**
 * The phases that run policies: gateway, route and backend for the request, and all three for the response. A chain is synchronous
 * until one of its policies waits.
 */
import type { HttpResponse, LocalReply } from "../../http/message/message.ts";
import type { CompiledPolicy } from "../../policies/compile.ts";
import { type CompiledChain, NO_POLICIES, stageName } from "../../policies/compile.ts";
import { isShadowKey } from "../../policies/contract/shadow.ts";
import type { RequestOutcome } from "../../policies/contract/types.ts";
import type { RequestPolicyKey } from "../../policies/policy-set.ts";
import { bodyIfShort } from "../../policies/shared/expressions.ts";
import type { Phase } from "../../trace/events.ts";
import type { Exchange } from "../exchange/exchange.ts";
import type { PhaseResult } from "../exchange/phase-result.ts";
import { AFFINITY } from "../trace/decisions.ts";

/** Policies of the listener and its gateway, before the route is known. */
export function gatewayPolicies(exchange: Exchange): PhaseResult {
  const chain = exchange.selected.listener?.policies;
  if (chain === undefined) return undefined;
  exchange.trace?.policySelection("gateway", chain.effective);
  return runChain(exchange, chain, 0, "gateway", "gateway policies");
}

/** Policies of the route, merged with those of routes that delegated to it. */
export function routePolicies(exchange: Exchange): PhaseResult {
  const chain = exchange.selected.routePolicies;
  exchange.trace?.policySelection("route", chain.effective);
  // A preflight that a gateway policy would have rejected for a missing login: only `cors` may respond to it.
  const { unlessCors } = exchange.found;
  if (unlessCors !== undefined && !chain.request.some(({ kind }) => kind === "cors"))
    throw thrownBy(exchange, "oidc", "gateway", unlessCors);
  return runChain(exchange, chain, 0, "route", "route policies");
}

/** Policies of the backend, again for each attempt. */
export function backendPolicies(exchange: Exchange): PhaseResult {
  const { backend } = exchange.selected;
  if (backend === undefined) return undefined;
  exchange.trace?.policySelection("backend", backend.policies.effective);
  const outcome = runChain(exchange, backend.policies, 0, "backend", undefined);
  return backend.affinity?.readsBody === true ? withBody(exchange, outcome) : outcome;
}

/** Waits for the request's body too: `sessionAffinity` reads it when the endpoint is chosen. */
async function withBody(exchange: Exchange, outcome: ReturnType<typeof runChain>): Promise<undefined | LocalReply> {
  const reply = await outcome;
  if (reply === undefined) await bodyIfShort(exchange, AFFINITY);
  return reply;
}

/** Runs a chain from its policy `from` on. `stage`: of the snapshot after the whole chain. */
function runChain(
  exchange: Exchange,
  chain: CompiledChain,
  from: number,
  phase: Phase,
  stage: string | undefined,
): undefined | LocalReply | Promise<undefined | LocalReply> {
  const { request } = chain;
  for (let i = from; i < request.length; i++) {
    const policy = request[i] as CompiledPolicy;
    let outcome: RequestOutcome;
    try {
      // A promise only where the policy has to wait: a turn of the event loop for each would cost every request.
      outcome = policy.onRequest?.(exchange);
    } catch (error) {
      throw thrownBy(exchange, policy.kind, phase, error);
    }
    if (outcome instanceof Promise) {
      const { phase: running } = exchange;
      return outcome.then(
        (reply) => {
          snapshot(exchange, policy.kind, phase);
          return reply ?? runChain(exchange, chain, i + 1, phase, stage);
        },
        (error: unknown) => {
          // The deadline may have passed, or the client may have left meanwhile.
          throw exchange.phase === running ? thrownBy(exchange, policy.kind, phase, error) : error;
        },
      );
    }
    if (exchange.trace !== undefined) snapshot(exchange, policy.kind, phase);
    if (outcome !== undefined) return outcome;
  }
  if (stage !== undefined) exchange.trace?.requestSnapshot(stage);
  return undefined;
}

/** Remembers the policy for the access log. Returns the error. */
function thrownBy({ result }: Exchange, policy: RequestPolicyKey, phase: Phase, error: unknown): unknown {
  result.thrower = { policy, phase };
  return error;
}

/** Taken after each policy that may have changed the request; a timeout and shadow policies change nothing that a snapshot shows. */
function snapshot(exchange: Exchange, kind: RequestPolicyKey, phase: Phase): void {
  if (kind !== "timeout" && !isShadowKey(kind)) exchange.trace?.requestSnapshot(stageName(kind, phase));
}

/** One policy of one chain, waiting for its turn. */
interface ResponseStep {
  readonly policy: CompiledPolicy;
  readonly phase: Phase;
}

/**
 * The chains in the order route, backend, gateway (docs/lifecycle.md#9-response-policies), then the route's final policies. While
 * a policy waits, the body is buffered.
 */
export function responsePolicies(exchange: Exchange): PhaseResult {
  const { selected, responseSide } = exchange;
  const route = selected.route === undefined ? NO_POLICIES : selected.routePolicies;
  const backend = selected.backend?.policies ?? NO_POLICIES;
  const gateway = selected.listener?.policies ?? NO_POLICIES;
  const policies = route.response.length + backend.response.length + gateway.response.length + route.final.length;
  if (policies === 0) return undefined;
  const steps = [
    ...stepsOf(exchange, route.response, "route"),
    ...stepsOf(exchange, backend.response, "backend"),
    ...stepsOf(exchange, gateway.response, "gateway"),
    ...stepsOf(exchange, route.final, "route"),
  ];
  const { head } = responseSide;
  const waiting = head && runSteps(exchange, steps, 0, head);
  if (waiting !== undefined) responseSide.hold();
  return waiting;
}

/** The steps of a chain. Policies for upstream responses only do not run for replies of the gateway. */
function stepsOf({ call }: Exchange, policies: readonly CompiledPolicy[], phase: Phase): ResponseStep[] {
  const fromUpstream = call !== undefined && call.answeredAt !== 0;
  return policies.filter((policy) => fromUpstream || policy.upstreamOnly !== true).map((policy) => ({ policy, phase }));
}

/** Runs the steps from `from` on. Stops if the client has left while a policy was waiting. */
function runSteps(
  exchange: Exchange,
  steps: readonly ResponseStep[],
  from: number,
  response: HttpResponse,
): undefined | Promise<undefined> {
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
