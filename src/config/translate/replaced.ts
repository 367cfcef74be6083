/** Policies of `policies[]` that never apply, because narrower ones replace them everywhere. */
import type { Origin } from "../../base/origin.ts";
import { formatPath, type Path } from "../../base/paths.ts";
import type { Ir, Route, TcpRoute } from "../../ir/ir.ts";
import { originsOf, type PolicySources } from "../../ir/origins.ts";
import { writtenKind } from "../../policies/contract/shadow.ts";
import type { PolicySet, SetKey } from "../../policies/policy-set.ts";
import type { Phase } from "../../trace/events.ts";
import { problemOf } from "../../translation/problems/lint.ts";
import { keysOf } from "../../translation/shadow-policies.ts";
import type { ConfigFile } from "../schema/config.ts";
import type { Context } from "./context.ts";
import { backendKey, keyOf, listenerKeys, phaseOf, routeKeys, targetKey } from "./targeted.ts";

/** A listener, route or backend with the policies that apply there. */
interface Holder {
  readonly policies: PolicySet;
  readonly sources?: PolicySources;
  readonly origin?: Origin | undefined;
  /** The field in which its own policies are written. */
  readonly own: Path;
}

/** What a target covers, by the phases that policies run in. */
type Covered = Readonly<Record<Phase, readonly Holder[]>>;

/** More places would hide the finding. */
const MAX_RELATED = 5;

/** Reports each of the valid `policies[]` that applies nowhere in what its target covers. */
export function reportReplaced(config: ConfigFile, ir: Ir, { report, listeners }: Context): void {
  if (config.policies.length === 0) return;
  const covered = coveredBy(new Set(config.policies.map(targetKey)), ir, listeners);
  for (const [i, input] of config.policies.entries()) {
    const holders = (covered.get(targetKey(input)) ?? []).flatMap((each) => each[phaseOf(input)]);
    for (const kind of keysOf(input.policy)) {
      const deciding = holders.filter(({ policies }) => policies[kind] !== undefined);
      if (deciding.length === 0 || deciding.some((holder) => isFrom(keyOf(input), kind, holder))) continue;
      const places = new Map<string, Path>();
      for (const holder of deciding) {
        for (const { path } of originsOf(holder, holder.origin, holder.own, ir)[kind] ?? [])
          places.set(formatPath(path), path);
        if (places.size >= MAX_RELATED) break;
      }
      const related = [...places.values()].slice(0, MAX_RELATED).map((path) => ({ path, message: "applies instead" }));
      const problem = problemOf({ code: "replaced-policy", found: [] }, related);
      report(["policies", i, "policy"], problem, writtenKind(kind));
    }
  }
}

function isFrom(policy: string, kind: SetKey, { sources }: Holder): boolean {
  return (
    sources?.[kind]?.some(
      (source) => source.in !== undefined && "policy" in source.in && source.in.policy === policy,
    ) ?? false
  );
}

function coveredBy(
  targets: ReadonlySet<string>,
  { binds, routeGroups, backends }: Ir,
  places: Context["listeners"],
): ReadonlyMap<string, Covered[]> {
  const covered = new Map<string, Covered[]>();
  const add = (keys: readonly string[], make: () => Covered): void => {
    const wanted = keys.filter((key) => targets.has(key));
    if (wanted.length === 0) return;
    const made = make();
    for (const key of wanted) covered.set(key, [...(covered.get(key) ?? []), made]);
  };
  const listeners = binds.flatMap((bind) => bind.listeners);
  for (const listener of listeners) {
    const routes = [...listener.routes, ...listener.tcpRoutes];
    const place = places.get(listener.key);
    add(place === undefined ? [] : listenerKeys(place), () => ({
      gateway: [{ ...listener, own: ["policies"] }],
      route: routes.flatMap(ofRoute),
      backend: routes.flatMap(ofBackends),
    }));
  }
  const routes = [...listeners, ...routeGroups].flatMap((owner): readonly (Route | TcpRoute)[] => owner.routes);
  for (const route of [...routes, ...listeners.flatMap(({ tcpRoutes }) => tcpRoutes)]) {
    const kind = "matches" in route ? "HTTPRoute" : "TCPRoute";
    add(routeKeys({ ...route, kind }), () => ({ gateway: [], route: ofRoute(route), backend: ofBackends(route) }));
  }
  for (const backend of backends)
    add([backendKey(backend.name)], () => ({ gateway: [], route: [], backend: [{ ...backend, own: ["policies"] }] }));
  return covered;
}

function ofRoute(route: Route | TcpRoute): Holder[] {
  return "policies" in route ? [{ ...route, own: ["policies"] }] : [];
}

function ofBackends({ backends, origin }: Route | TcpRoute): Holder[] {
  return backends.map((backend, i) => ({ ...backend, origin, own: ["backends", i, "policies"] }));
}
