import type { Path } from "../../base/paths.ts";
import type { TargetedPolicy } from "../../ir/ir.ts";
import { levelOf, NO_PHASES, type PhaseLevels, type PolicyLevel } from "../../ir/origins.ts";
import { kindsOf, mergeLevels, NO_LEVEL } from "../../policies/merge.ts";
import type { PolicyKind, PolicySet } from "../../policies/policy-set.ts";
import { KINDS } from "../../policies/registry.ts";
import type { Phase } from "../../trace/events.ts";
import { type CalledInputs, serviceKey } from "../../translation/call-policies.ts";
import { translatePolicies } from "../../translation/policies.ts";
import { reportDuplicates } from "../../translation/references.ts";
import type { ConfigFile, TargetedPolicyInput } from "../schema/config.ts";
import type { Context, ListenerPlace, RoutePlace, Targeted } from "./context.ts";

/**
 * Translates `policies[]` (docs/configuration.md#targetedpolicy): policies that name their target instead of being written in it.
 * Reports problems of entries, also a second policy of a kind for the same target unless the kind is `repeatable`: which one
 * applied would depend on their order.
 */
export function translateTargeted(
  config: ConfigFile,
  context: Pick<Context, "report" | "sources" | "calledTargets" | "incomplete" | "cel">,
): Targeted {
  const { report, incomplete } = context;
  const list = config.policies.map((input, i) => {
    const path = ["policies", i];
    const phase = phaseOf(input);
    if (input.phase === "gateway" && input.target.gateway === undefined)
      report([...path, "phase"], { message: "gateway policies run before there is a route; target a gateway" });
    return { input, phase, set: translatePolicies(input.policy, phase, [...path, "policy"], context), path };
  });
  for (const { input, set, path } of list)
    if (written(input).length > 1 || (Object.keys(set).length === 0 && !incomplete.has("policies")))
      report([...path, "policy"], { message: "'policies' must contain exactly 1 policy; write one entry for each" });
  const named = list.map(({ input, path }) => {
    return { key: keyOf(input), name: input.name.name, origin: { path: [...path, "name"] } };
  });
  reportDuplicates("policy", named, report);
  const levels = { gateway: new Map(), route: new Map(), backend: new Map() } satisfies Record<
    Phase,
    Map<string, PolicyLevel>
  >;
  const first = new Map<string, number>();
  for (const [i, { input, phase, set }] of list.entries()) {
    const key = targetKey(input);
    for (const kind of kindsOf(set)) {
      const slot = `${phase} ${kind} ${key}`;
      const other = first.get(slot);
      if (other === undefined) first.set(slot, i);
      else if (KINDS[kind].repeatable !== true)
        report(["policies", i, "policy"], { message: rival(kind, other) }, kind);
    }
    const own = levelOf(set, () => ({ in: { policy: keyOf(input) } }));
    levels[phase].set(key, mergeLevels(levels[phase].get(key) ?? NO_LEVEL, own));
  }
  /** The policies for a list of target keys, the widest first; narrower ones replace wider ones. */
  const pick = (keys: readonly string[]): PhaseLevels => {
    const of = (phase: Phase): PolicyLevel =>
      mergeLevels(...keys.map((key): PolicyLevel => levels[phase].get(key) ?? NO_LEVEL));
    return list.length === 0 ? NO_PHASES : { gateway: of("gateway"), route: of("route"), backend: of("backend") };
  };
  return {
    all: list.map(({ input, path, phase, set }) => dump(input, path, phase, set)),
    forListener: (listener) => pick(listenerKeys(listener)),
    forRoute: (route) => pick(routeKeys(route)),
    forBackend: (name) => pick([backendKey(name)]).backend,
    forService: (service, port) => pick([serviceKey(service), serviceKey(service, port)]).backend,
  };
}

/**
 * The keys that target a listener, the widest first. A listener of `gateways` can be targeted by the name of its entry too:
 * `edge/web` is the listener `edge/web` of the gateway `default`, and the listener `web` of the gateway `edge`.
 */
export function listenerKeys({ gatewayName, gatewayNamespace, port, name, entry }: ListenerPlace): string[] {
  const own = `gateway ${gatewayNamespace}/${gatewayName}`;
  if (entry === undefined) return [own, `${own} port ${port}`, `${own} listener ${name}`];
  const other = `gateway ${gatewayNamespace}/${entry.gateway}`;
  const keys = [own, other, `${own} port ${port}`, `${other} port ${port}`, `${own} listener ${name}`];
  return [...new Set([...keys, ...(entry.listener === undefined ? [] : [`${other} listener ${entry.listener}`])])];
}

/** The keys that target a route, the widest first: its name, with its kind, with the rule. */
export function routeKeys({ kind, name, namespace, ruleName }: RoutePlace): string[] {
  const route = `route ${namespace}/${name}`;
  const keys = [route, `${route} kind ${kind}`];
  return ruleName === undefined ? keys : keys.concat(keys.map((key) => `${key} rule ${ruleName}`));
}

export function backendKey(name: string, namespace = ""): string {
  return `backend ${namespace}/${name}`;
}

/** The key of the target of an entry: one of those above. */
export function targetKey({ target: { gateway, route, backend } }: TargetedPolicyInput): string {
  if (gateway !== undefined) {
    const { listenerName, port } = gateway;
    const part = listenerName !== undefined ? ` listener ${listenerName}` : port !== undefined ? ` port ${port}` : "";
    return `gateway ${gateway.gatewayNamespace}/${gateway.gatewayName}${part}`;
  }
  if (route !== undefined) {
    const { namespace, name, kind, ruleName } = route;
    const part = (what: string, value: string | undefined): string => (value === undefined ? "" : ` ${what} ${value}`);
    return `route ${namespace}/${name}${part("kind", kind)}${part("rule", ruleName)}`;
  }
  if (backend?.service !== undefined) {
    const { namespace, hostname, port } = backend.service;
    return serviceKey(`${namespace}/${hostname}`, port);
  }
  const { name = "", namespace, section } = backend?.backend ?? {};
  // Backends have no sections, so nothing is looked up by this key.
  return section === undefined ? backendKey(name, namespace) : `${backendKey(name, namespace)} section ${section}`;
}

/** What policies may call, as the file has it. */
export function calledInputs({ backends, policies }: ConfigFile): CalledInputs {
  const entries = Map.groupBy(policies, targetKey);
  const services = new Map([...entries].map(([key, list]) => [key, list.map(({ policy }) => policy)]));
  const called = backends.map(({ name, host, dns, endpoints, policies: own = {} }) => {
    const hosts = endpoints && (Array.isArray(endpoints) ? endpoints.map((endpoint) => endpoint.host) : []);
    return [name, { host, dns, endpoints: hosts, policies: [...(services.get(backendKey(name)) ?? []), own] }] as const;
  });
  return { backends: new Map(called), services };
}

/** Kinds that run only in the backend phase run there wherever they are attached: for all backends of the gateway or route. */
export function phaseOf({ target, phase, policy }: TargetedPolicyInput): Phase {
  if (target.backend !== undefined) return "backend";
  const kinds = written({ policy });
  const ofBackends = kinds.length > 0 && kinds.every((kind) => KINDS[kind].phases.join() === "backend");
  return phase === "route" && ofBackends ? "backend" : phase;
}

/** The kinds of an entry. */
function written({ policy }: Pick<TargetedPolicyInput, "policy">): readonly PolicyKind[] {
  return Object.entries(policy).flatMap(([kind, value]) => (value === undefined ? [] : [kind as PolicyKind]));
}

function rival(kind: string, other: number): string {
  return `duplicate ${kind} for this target, of which only one can apply; the first is policies[${other}]`;
}

/** `<namespace>/<name>` */
export function keyOf({ name }: TargetedPolicyInput): string {
  return `${name.namespace}/${name.name}`;
}

function dump(input: TargetedPolicyInput, path: Path, phase: Phase, set: PolicySet): TargetedPolicy {
  const { name, target } = input;
  const { gateway, ...others } = target;
  return {
    key: keyOf(input),
    name: { name: name.name, namespace: name.namespace },
    origin: { path },
    target: gateway === undefined ? defined(others) : { gateway: { ...defined(gateway), ...listenerOf(gateway) } },
    policy: phase === "backend" ? { backend: set } : { traffic: { phase, ...set } },
  };
}

/** Dumps have `listenerName: null` for a whole gateway. */
function listenerOf({ listenerName = null }: { readonly listenerName?: string | undefined | null }): object {
  return { listenerName };
}

/** Drops undefined fields at any depth. */
function defined<T extends object>(value: T): Readonly<Record<string, unknown>> {
  return JSON.parse(JSON.stringify(value)) as Readonly<Record<string, unknown>>;
}
