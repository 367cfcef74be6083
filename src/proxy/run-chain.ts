import type { LocalReply } from "../http/message.ts";
import { type CompiledChain, stageName } from "../policies/compile.ts";
import type { PolicyKind } from "../policies/policy-set.ts";
import type { Phase } from "../trace/events.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** Runs the request side of a phase's policies in their order. Stays synchronous until a policy waits. */
export function runChain(
  exchange: ExchangeState,
  chain: CompiledChain,
  phase: Phase,
  stage: string | undefined,
): undefined | LocalReply | Promise<undefined | LocalReply> {
  return runFrom(exchange, chain, 0, phase, stage);
}

function runFrom(
  exchange: ExchangeState,
  chain: CompiledChain,
  from: number,
  phase: Phase,
  stage: string | undefined,
): undefined | LocalReply | Promise<undefined | LocalReply> {
  const { request } = chain;
  for (let i = from; i < request.length; i++) {
    const policy = request[i];
    const outcome = policy?.onRequest?.(exchange);
    if (outcome instanceof Promise) {
      return outcome.then((reply) => {
        if (policy !== undefined) snapshot(exchange, policy.kind, phase);
        return reply ?? runFrom(exchange, chain, i + 1, phase, stage);
      });
    }
    if (exchange.trace !== undefined && policy !== undefined) snapshot(exchange, policy.kind, phase);
    if (outcome !== undefined) return outcome;
  }
  if (stage !== undefined) exchange.trace?.requestSnapshot(stage);
  return undefined;
}

/** After each policy that may have changed the request; a timeout changes nothing that a snapshot shows. */
function snapshot(exchange: ExchangeState, kind: PolicyKind, phase: Phase): void {
  if (kind !== "timeout") exchange.trace?.requestSnapshot(stageName(kind, phase));
}
