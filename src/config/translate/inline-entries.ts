import type { TargetedPolicy } from "../../ir/ir.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { ListenerPlace } from "./context.ts";

/** The policies that stand at a listener itself, as the dump lists them among the targeted ones (reference 4.4). */
export function inlineEntries(
  key: string,
  { gatewayName, gatewayNamespace, name }: ListenerPlace,
  policies: PolicySet,
): TargetedPolicy[] {
  const target = { gateway: { gatewayName, gatewayNamespace, listenerName: name } };
  return Object.entries(policies).map(([kind, policy], i) => ({
    key: `${key}/${i}`,
    name: null,
    target,
    policy: { traffic: { phase: "gateway", [kind]: policy } },
  }));
}

/** `inline` where other places add to the policies that are written at one, or win over some of them. */
export function inlineUnlessAll(written: PolicySet, inForce: PolicySet): { readonly inline?: PolicySet } {
  const own = new Map<string, unknown>(Object.entries(written));
  const others = Object.entries(inForce).filter(([kind, value]) => own.get(kind) !== value);
  return others.length === 0 && own.size === Object.keys(inForce).length ? {} : { inline: written };
}
