/**
 * The phases that run policies: gateway, route and backend for the request, and all three for the response. A chain is synchronous
 * until one of its policies waits, and stops if the phase ends meanwhile: a deadline passes, a body breaks off, or the client leaves.
 */
import type { HttpResponse, LocalReply } from "../../http/message/message.ts";
import type { CompiledPolicy } from "../../policies/compile.ts";
import { type CompiledChain, NO_POLICIES, stageName } from "../../policies/compile.ts";
import { isShadowKey } from "../../policies/contract/shadow.ts";
import type { RequestOutcome } from "../../policies/contract/types.ts";
import { bodyIfShort } from "../../policies/shared/expressions.ts";
import type { Exchange } from "../exchange/exchange.ts";
import type { PhaseResult } from "../exchange/phase-result.ts";
import { AFFINITY } from "../trace/decisions.ts";

/** What the phases may read of an exchange, and set by the parts in it. */
type Running = Pick<
  Exchange,
  | "call"
  | "phase"
  | "policyState"
  | "policyView"
  | "requestSide"
  | "responseSide"
  | "result"
  | "selected"
  | "services"
  | "trace"
>;

/** Policies of the listener and its gateway, before the route is known. */
export function gatewayPolicies(exchange: Running): PhaseResult {
  const chain = exchange.selected.listener?.policies;
  if (chain === undefined) return undefined;
  exchange.trace?.policySelection("gateway", chain.effective);
  if (chain.request.length > 0 && exchange.services.recorder?.sampler !== undefined) exchange.requestSide.keepHead();
  return runChain(exchange, chain, 0, "gateway policies");
}

/** Policies of the route, merged with those of routes that delegated to it. */
export function routePolicies(exchange: Running): PhaseResult {
  const chain = exchange.selected.routePolicies;
  exchange.trace?.policySelection("route", chain.effective);
  // A preflight that a gateway policy would have rejected for a missing login: only `cors` may respond to it.
  const { unlessCors } = exchange.policyState.found;
  if (unlessCors !== undefined && !chain.request.some(({ kind }) => kind === "cors"))
    throw endedBy(exchange, { kind: unlessCors.policy, phase: "gateway" }, unlessCors.error);
  return runChain(exchange, chain, 0, "route policies");
}

/** Policies of the backend, again for each attempt. */
export function backendPolicies(exchange: Running): PhaseResult {
  const { backend } = exchange.selected;
  if (backend === undefined) return undefined;
  exchange.trace?.policySelection("backend", backend.policies.effective);
  const outcome = runChain(exchange, backend.policies, 0, undefined);
  return backend.affinity?.readsBody === true ? withBody(exchange, outcome) : outcome;
}

/** Waits for the request's body too: `sessionAffinity` reads it when the endpoint is chosen. */
async function withBody(exchange: Running, outcome: ReturnType<typeof runChain>): Promise<undefined | LocalReply> {
  const { phase } = exchange;
  const reply = await outcome;
  if (reply === undefined && exchange.phase === phase) await bodyIfShort(exchange.policyView, AFFINITY);
  return reply;
}

/** Runs a chain from its policy `from` on. `stage`: of the snapshot after the whole chain. */
function runChain(
  exchange: Running,
  chain: CompiledChain,
  from: number,
  stage: string | undefined,
): undefined | LocalReply | Promise<undefined | LocalReply> {
  const { request } = chain;
  const { phase: running } = exchange;
  for (let i = from; i < request.length; i++) {
    const policy = request[i] as CompiledPolicy;
    let outcome: RequestOutcome;
    try {
      // A promise only where the policy has to wait: a turn of the event loop for each would cost every request.
      outcome = policy.onRequest?.(exchange.policyView);
    } catch (error) {
      throw endedBy(exchange, policy, error);
    }
    if (outcome instanceof Promise)
      return outcome.then(
        (reply) => {
          if (exchange.phase !== running) return undefined;
          snapshot(exchange, policy);
          return reply === undefined ? runChain(exchange, chain, i + 1, stage) : endedBy(exchange, policy, reply);
        },
        (error: unknown) => {
          throw exchange.phase === running ? endedBy(exchange, policy, error) : error;
        },
      );
    if (exchange.phase !== running) return undefined;
    if (exchange.trace !== undefined) snapshot(exchange, policy);
    if (outcome !== undefined) return endedBy(exchange, policy, outcome);
  }
  if (stage !== undefined) exchange.trace?.requestSnapshot(stage);
  return undefined;
}

/** Remembers the policy that ends the request. Returns its error or reply. */
function endedBy<Ending>(
  { result }: Running,
  { kind, phase }: Pick<CompiledPolicy, "kind" | "phase">,
  ending: Ending,
): Ending {
  result.thrower = { policy: kind, phase };
  return ending;
}

/** Taken after each policy that may have changed the request; a timeout and shadow policies change nothing that a snapshot shows. */
function snapshot(exchange: Running, { kind, phase }: CompiledPolicy): void {
  if (kind !== "timeout" && !isShadowKey(kind)) exchange.trace?.requestSnapshot(stageName(kind, phase));
}

/** The chains of response policies, in their order (docs/lifecycle.md#9-response-policies). */
const RESPONSE_CHAINS: readonly ((exchange: Running) => readonly CompiledPolicy[])[] = [
  ({ selected }) => selected.routePolicies.response,
  ({ selected }) => (selected.backend?.policies ?? NO_POLICIES).response,
  ({ selected }) => (selected.listener?.policies ?? NO_POLICIES).response,
  ({ selected }) => selected.routePolicies.final,
];

/** Runs the response policies. While one waits, the body is buffered. */
export function responsePolicies(exchange: Running): PhaseResult {
  const { head } = exchange.responseSide;
  const waiting = head && runResponseChains(exchange, head, 0, 0);
  if (waiting !== undefined) exchange.responseSide.hold();
  return waiting;
}

/** Runs only the response policies with `lastWord`, such as those that add pages to errors. */
export function lastWords({
  policyView,
  responseSide: { head },
  selected: { listener, routePolicies },
}: Pick<Running, "policyView" | "responseSide" | "selected">): void {
  if (head === undefined) return;
  for (const { lastWord, onResponse } of [...routePolicies.response, ...(listener?.policies.response ?? [])])
    if (lastWord === true) void onResponse?.(policyView, head);
}

/** Runs the chains from `chain` on, that one from its policy `from` on. */
function runResponseChains(
  exchange: Running,
  response: HttpResponse,
  chain: number,
  from: number,
): undefined | Promise<undefined | LocalReply> {
  const { phase: running } = exchange;
  for (let c = chain; c < RESPONSE_CHAINS.length; c++) {
    const policies = RESPONSE_CHAINS[c]?.(exchange) ?? [];
    for (let i = c === chain ? from : 0; i < policies.length; i++) {
      const policy = policies[i] as CompiledPolicy;
      // Replies of the gateway do not pass through policies for responses of the upstream.
      if (policy.upstreamOnly === true && (exchange.call?.answeredAt ?? 0) === 0) continue;
      let outcome: ReturnType<NonNullable<CompiledPolicy["onResponse"]>>;
      try {
        outcome = policy.onResponse?.(exchange.policyView, response);
      } catch (error) {
        throw endedBy(exchange, policy, error);
      }
      if (outcome instanceof Promise)
        return outcome.then(
          (reply) => {
            if (exchange.phase !== running) return undefined;
            exchange.trace?.responseSnapshot(stageName(policy.kind, policy.phase), response);
            return reply === undefined
              ? runResponseChains(exchange, response, c, i + 1)
              : endedBy(exchange, policy, reply);
          },
          (error: unknown) => {
            throw exchange.phase === running ? endedBy(exchange, policy, error) : error;
          },
        );
      if (exchange.phase !== running) return undefined;
      exchange.trace?.responseSnapshot(stageName(policy.kind, policy.phase), response);
    }
  }
  return undefined;
}
