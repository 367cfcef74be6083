import type { Listener, Route, TargetedPolicy } from "../../ir/ir.ts";
import type { PolicySet } from "../../ir/policies.ts";
import { mergePolicies } from "../../policies/merge.ts";
import type { ConfigFile, TargetedPolicyInput } from "../schema/config.ts";
import type { Context, Path, Targeted } from "./context.ts";
import { reportDuplicates } from "./duplicates.ts";
import { translatePolicies } from "./policies.ts";

/** Reads `policies[]`; what is wrong inside an entry is reported. */
export function translateTargeted(
  config: ConfigFile,
  context: Pick<Context, "report" | "sources" | "calledTargets" | "incomplete">,
): Targeted {
  const { report, incomplete } = context;
  const list = config.policies.map((input, i) => {
    const path = ["policies", i];
    const phase = input.target.backend === undefined ? input.phase : "backend";
    return { input, set: translatePolicies(input.policy, phase, [...path, "policy"], context), path };
  });
  for (const { set, path } of list)
    if (Object.keys(set).length > 1 || (Object.keys(set).length === 0 && !incomplete.has("policies")))
      report([...path, "policy"], { message: "'policies' must contain exactly 1 policy; write one entry for each" });
  const named = list.map(({ input, path }) => ({ key: keyOf(input), name: input.name.name, path: [...path, "name"] }));
  reportDuplicates("policy", named, report);
  const sets = new Map<string, PolicySet>();
  for (const { input, set } of list) {
    const key = targetKey(input);
    sets.set(key, mergePolicies(sets.get(key) ?? {}, set));
  }
  const pick = (...target: readonly string[]): PolicySet => sets.get(target.join("/")) ?? NONE;
  return {
    all: list.map(({ input, set }) => dump(input, set)),
    forListener: (gateway, namespace, listener) =>
      mergePolicies(pick("gateway", namespace, gateway), pick("gateway", namespace, gateway, listener)),
    forRoute: (name, namespace, ruleName) => {
      if (sets.size === 0) return NONE;
      const route = pick("route", namespace, name);
      return ruleName === undefined ? route : mergePolicies(route, pick("route", namespace, name, ruleName));
    },
    forBackend: (name) => pick("backend", "", name),
  };
}

const NONE: PolicySet = Object.freeze({});

/** What there is to attach policies to. */
export interface Targets {
  readonly listeners: readonly Pick<Listener, "name" | "gatewayName" | "gatewayNamespace">[];
  readonly routes: readonly Pick<Route, "name" | "namespace" | "ruleName">[];
  readonly backends: Iterable<string>;
}

/** Calls back for each policy whose target does not exist: it would never apply, and nobody would notice. */
export function findDangling(
  policies: readonly TargetedPolicyInput[],
  { listeners, routes, backends }: Targets,
  tell: (path: Path, kind: "gateway" | "route" | "backend", wanted: string, known: readonly string[]) => void,
): void {
  if (policies.length === 0) return;
  const known = {
    gateway: new Set(
      listeners.flatMap(({ name, gatewayName, gatewayNamespace }) => [
        `gateway/${gatewayNamespace}/${gatewayName}`,
        `gateway/${gatewayNamespace}/${gatewayName}/${name}`,
      ]),
    ),
    route: new Set(
      routes.flatMap(({ name, namespace, ruleName }) => {
        const route = `route/${namespace}/${name}`;
        return ruleName === undefined ? [route] : [route, `${route}/${ruleName}`];
      }),
    ),
    backend: new Set(Array.from(backends, (name) => `backend//${name}`)),
  };
  for (const [i, input] of policies.entries()) {
    const key = targetKey(input);
    const kind = kindOf(input);
    const short = (text: string): string => text.replace(/^\w+\/+(default\/)?/, "");
    if (!known[kind].has(key)) tell(["policies", i, "target", kind], kind, short(key), [...known[kind]].map(short));
  }
}

function kindOf({ target }: TargetedPolicyInput): "gateway" | "route" | "backend" {
  return target.gateway !== undefined ? "gateway" : target.route !== undefined ? "route" : "backend";
}

/** `gateway/<namespace>/<name>[/<listener>]`, `route/<namespace>/<name>[/<rule>]` or `backend/<namespace>/<name>`. */
function targetKey({ target: { gateway, route, backend } }: TargetedPolicyInput): string {
  const [kind, namespace, name, part] =
    gateway !== undefined
      ? ["gateway", gateway.gatewayNamespace, gateway.gatewayName, gateway.listenerName]
      : route !== undefined
        ? ["route", route.namespace, route.name, route.ruleName]
        : ["backend", backend?.backend.namespace, backend?.backend.name];
  return [kind, namespace, name, ...(part === undefined ? [] : [part])].join("/");
}

function keyOf({ name }: TargetedPolicyInput): string {
  return `${name.namespace}/${name.name}`;
}

function dump(input: TargetedPolicyInput, set: PolicySet): TargetedPolicy {
  const { name, target, phase } = input;
  const { gateway, ...others } = target;
  const shown = Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined));
  return {
    key: keyOf(input),
    name: { name: name.name, namespace: name.namespace },
    target: gateway === undefined ? shown : { gateway: { ...gateway, listenerName: gateway.listenerName ?? null } },
    policy: target.backend === undefined ? { traffic: { phase, ...set } } : { backend: set },
  };
}
