/** Which parts of a policy another policy takes the place of. */
import type { Read } from "../../graph.ts";
import { claimantAt } from "./claims.ts";
import { type Claim, isCombined, lostClaims } from "./conflicts.ts";
import { policyInput } from "./input.ts";
import { policiesOf, policyTarget, type TargetPlace } from "./targets.ts";

export interface Overridden extends Claim {
  /** `<kind>/<namespace>/<name>[/<section>]` */
  readonly target: string;
  /** Key of the other policy. */
  readonly by: string;
  /** The other one is attached to something wider with the inheritance `Override`. */
  readonly wider?: string;
}

/** What a policy configures at a target without effect. `gateways`: keys of those that the target belongs to. */
export function overriddenAt(
  read: Read,
  policy: string,
  place: TargetPlace,
  gateways: readonly string[],
): readonly Overridden[] {
  const target = policyTarget(place.kind, place.namespace, place.name, place.section);
  const input = read.query(policyInput, policy);
  if (input === undefined) return [];
  const claimants = claimantsAt(read, target);
  const lost = lostClaims(claimants)
    .filter(({ loser }) => loser === policy)
    .map(({ phase, kind, winner }): Overridden => ({ phase, kind, target, by: winner }));
  const rest = claimantAt(input, target).claims.filter(
    ({ phase, kind }) => !isCombined(phase, kind) && !lost.some((each) => each.phase === phase && each.kind === kind),
  );
  const overruled = rest.flatMap((claim): Overridden[] => {
    for (const wider of widerTargets(place, gateways)) {
      const winner = claimantsAt(read, wider).find(
        ({ key, override, claims }) => override && key !== policy && claims.some((each) => isSame(each, claim)),
      );
      if (winner !== undefined) return [{ ...claim, target, by: winner.key, wider }];
    }
    return [];
  });
  return [...lost, ...overruled];
}

function isSame(a: Claim, b: Claim): boolean {
  return a.phase === b.phase && a.kind === b.kind;
}

function claimantsAt(read: Read, target: string) {
  return read
    .query(policiesOf, target)
    .map((key) => read.query(policyInput, key))
    .filter((input) => input !== undefined)
    .map((input) => claimantAt(input, target));
}

/** The targets around one. With several Gateways none is certain to be around it. */
function widerTargets({ kind, namespace, name, section }: TargetPlace, gateways: readonly string[]): readonly string[] {
  const whole = section === undefined ? [] : [policyTarget(kind, namespace, name)];
  const [gateway, ...others] = gateways;
  if (kind === "Gateway" || gateway === undefined || others.length > 0) return whole;
  return [`Gateway/${gateway}`, ...whole];
}
