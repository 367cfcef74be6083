import type { TargetedPolicy } from "../../ir/ir.ts";
import type { PolicySet } from "../../ir/policies.ts";
import type { ConfigFile, TargetedPolicyInput } from "../schema/config.ts";
import type { Path } from "./context.ts";
import { mergePolicies, toPolicySet } from "./policies.ts";

/** What `policies[]` attaches to each kind of target (reference 1.9). */
export interface Targeted {
  readonly all: readonly TargetedPolicy[];
  readonly forListener: (gateway: string, namespace: string, listener: string) => PolicySet;
  readonly forRoute: (name: string, namespace: string, ruleName: string | undefined) => PolicySet;
  readonly forBackend: (name: string) => PolicySet;
}

export function translateTargeted(
  config: ConfigFile,
  report: (path: Path, problem: { message: string }) => void,
): Targeted {
  const list = config.policies.map((input, i) => ({ input, set: toPolicySet(input.policy), path: ["policies", i] }));
  for (const { set, path } of list)
    if (Object.keys(set).length !== 1)
      report([...path, "policy"], { message: "'policies' must contain exactly 1 policy" });
  const pick = (matches: (input: TargetedPolicyInput) => boolean): PolicySet =>
    mergePolicies(...list.filter(({ input }) => matches(input)).map(({ set }) => set));
  return {
    all: list.map(({ input, set }) => dump(input, set)),
    forListener: (gateway, namespace, listener) => {
      const ofGateway = (named: boolean) =>
        pick(({ phase, target }) => {
          const wanted = target.gateway;
          if (phase !== "route" || wanted === undefined) return false;
          if (wanted.gatewayName !== gateway || wanted.gatewayNamespace !== namespace) return false;
          return named ? wanted.listenerName === listener : wanted.listenerName === undefined;
        });
      return mergePolicies(ofGateway(false), ofGateway(true));
    },
    forRoute: (name, namespace, ruleName) =>
      pick(({ phase, target }) => {
        const wanted = target.route;
        if (phase !== "route" || wanted === undefined) return false;
        if (wanted.name !== name || wanted.namespace !== namespace) return false;
        return wanted.ruleName === undefined || wanted.ruleName === ruleName;
      }),
    forBackend: (name) => pick(({ target }) => target.backend?.backend.name === name),
  };
}

function dump(input: TargetedPolicyInput, set: PolicySet): TargetedPolicy {
  const { name, target, phase } = input;
  const shown = Object.fromEntries(Object.entries(target).filter(([, value]) => value !== undefined));
  return {
    key: `${name.namespace}/${name.name}`,
    name: { name: name.name, namespace: name.namespace },
    target: shown,
    policy: target.backend === undefined ? { traffic: { phase, ...set } } : { backend: set },
  };
}
