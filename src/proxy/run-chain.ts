import type { LocalReply } from "../http/message.ts";
import type { PolicyKind } from "../ir/policies.ts";
import { type CompiledChain, stageName } from "../policies/compile.ts";
import type { Phase } from "../trace/events.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** Runs the request side of a phase's policies in their order. Stays synchronous until a policy waits. */
export function runChain(
  x: ExchangeState,
  chain: CompiledChain,
  phase: Phase,
  stage: string | undefined,
): undefined | LocalReply | Promise<undefined | LocalReply> {
  return runFrom(x, chain, 0, phase, stage);
}

function runFrom(
  x: ExchangeState,
  chain: CompiledChain,
  from: number,
  phase: Phase,
  stage: string | undefined,
): undefined | LocalReply | Promise<undefined | LocalReply> {
  const { request } = chain;
  for (let i = from; i < request.length; i++) {
    const policy = request[i];
    const outcome = policy?.onRequest?.(x);
    if (outcome instanceof Promise) {
      return outcome.then((reply) => {
        if (policy !== undefined) snapshot(x, policy.kind, phase);
        return reply ?? runFrom(x, chain, i + 1, phase, stage);
      });
    }
    if (x.trace !== undefined && policy !== undefined) snapshot(x, policy.kind, phase);
    if (outcome !== undefined) return outcome;
  }
  if (stage !== undefined) x.trace?.requestSnapshot(stage);
  return undefined;
}

/** After each policy that may have changed the request; a timeout changes nothing that a snapshot shows. */
function snapshot(x: ExchangeState, kind: PolicyKind, phase: Phase): void {
  if (kind !== "timeout") x.trace?.requestSnapshot(stageName(kind, phase));
}
