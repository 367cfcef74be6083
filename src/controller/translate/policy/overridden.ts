/** Which parts of a policy have no effect, because another policy applies instead. */
import { refKey } from "../../../kube/keys.ts";
import type { Read } from "../../graph/graph.ts";
import { inputsAt, isCombined, type Part } from "./parts.ts";
import type { TargetRef } from "./targets.ts";

export interface Overridden extends Part {
  /** `<kind>/<namespace>/<name>[/<section>]` */
  readonly target: string;
  /** Key of the other policy. */
  readonly by: string;
  /** The other policy is attached to a wider target with the inheritance `Override`. */
  readonly wider?: string;
  /** The other policy is attached to this listener, which has the same port and comes first. */
  readonly listener?: string;
}

/** What a policy configures at a target without effect. `gateways`: keys of those that the target belongs to. */
export function overriddenAt(
  read: Read,
  policy: string,
  place: TargetRef,
  gateways: readonly string[],
): readonly Overridden[] {
  const target = refKey(place);
  const attached = inputsAt(read, target);
  const own = attached.parts.find(({ key }) => key === policy)?.parts ?? [];
  const lost = attached.lost
    .filter((each) => each.policy === policy)
    .map(({ phase, kind, by }): Overridden => ({ phase, kind, target, by }));
  const rest = own.filter((part) => !isCombined(part.phase, part.kind) && !lost.some((each) => isSame(each, part)));
  const overruled = overruledBy(read, policy, rest, target, widerTargets(place, gateways));
  const { override = false } = attached.parts.find(({ key }) => key === policy) ?? {};
  const ofPort = rest
    .filter((part) => part.phase === "frontend" && !overruled.some((each) => isSame(each, part)))
    .flatMap((part): Overridden[] => {
      for (const other of earlierListeners(read, place)) {
        const winner = inputsAt(read, other).parts.find(
          (each) => (each.override || !override) && each.parts.some((own) => isSame(own, part)),
        );
        if (winner !== undefined) return [{ ...part, target, by: winner.key, listener: other }];
      }
      return [];
    });
  return [...lost, ...overruled, ...ofPort];
}

/**
 * What a policy configures as a filter of a route without effect: only policies with the inheritance `Override` replace filters.
 * `place`: the route, with the rule as its section if it has a name.
 */
export function overriddenFilter(
  read: Read,
  policy: string,
  parts: readonly Part[],
  place: TargetRef,
  gateways: readonly string[],
): readonly Overridden[] {
  const target = refKey(place);
  const rest = parts.filter(({ phase, kind }) => !isCombined(phase, kind));
  return overruledBy(read, policy, rest, target, [...widerTargets(place, gateways), target]);
}

/** The parts that policies of one of the targets replace, the widest first, because these have the inheritance `Override`. */
function overruledBy(
  read: Read,
  policy: string,
  parts: readonly Part[],
  target: string,
  targets: readonly string[],
): readonly Overridden[] {
  return parts.flatMap((part): Overridden[] => {
    for (const wider of targets) {
      const winner = inputsAt(read, wider).parts.find(
        ({ key, override, parts: others }) => override && key !== policy && others.some((each) => isSame(each, part)),
      );
      if (winner !== undefined) return [{ ...part, target, by: winner.key, wider }];
    }
    return [];
  });
}

/** Targets of the listeners of the same port, whose settings of connections apply instead (`frontendOf`). */
function earlierListeners(read: Read, { kind, namespace, name, section }: TargetRef): readonly string[] {
  if (kind !== "Gateway" || section === undefined) return [];
  const listeners = read.get("Gateway", `${namespace}/${name}`)?.spec.listeners ?? [];
  const own = listeners.findIndex((each) => each.name === section);
  return listeners
    .slice(0, Math.max(own, 0))
    .filter(({ port }) => port === listeners[own]?.port)
    .map((each) => refKey({ kind, namespace, name, section: each.name }));
}

function isSame(a: Part, b: Part): boolean {
  return a.phase === b.phase && a.kind === b.kind;
}

/** The targets around one. With several Gateways none is certain to be around it. */
function widerTargets({ kind, namespace, name, section }: TargetRef, gateways: readonly string[]): readonly string[] {
  const whole = section === undefined ? [] : [refKey({ kind, namespace, name })];
  const [gateway, ...others] = gateways;
  if (kind === "Gateway" || gateway === undefined || others.length > 0) return whole;
  return [`Gateway/${gateway}`, ...whole];
}
