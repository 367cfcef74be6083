/** Which of several policies for one target applies (reference 6.1): kind by kind, the oldest, then the first by namespace and name. */

import type { PolicyKind } from "../../../policies/policy-set.ts";
import { KINDS } from "../../../policies/registry.ts";

/** What a policy configures at one target: a kind in a phase, or a field of `frontend`. */
export interface Claim {
  /** `frontend`, `gateway`, `route` or `backend`. */
  readonly phase: string;
  readonly kind: string;
}

export interface Claimant {
  /** `<namespace>/<name>` */
  readonly key: string;
  readonly created: string;
  readonly override: boolean;
  readonly claims: readonly Claim[];
}

/** A claim of a policy that another policy has taken. */
export interface LostClaim extends Claim {
  /** Key of the policy that lost. */
  readonly loser: string;
  /** Key of the policy that applies. */
  readonly winner: string;
}

/** By precedence. */
export function byAge<C extends Pick<Claimant, "key" | "created">>(claimants: readonly C[]): readonly C[] {
  return [...claimants].sort((a, b) => compare(a.created, b.created) || compare(a.key, b.key));
}

/**
 * The claims that lose among the policies of one target. A policy with the inheritance `Override` wins over those without. Kinds
 * that combine, such as `authorization`, do not conflict.
 */
export function lostClaims(claimants: readonly Claimant[]): readonly LostClaim[] {
  const winners = new Map<string, string>();
  const lost: LostClaim[] = [];
  const ordered = byAge(claimants);
  for (const { key, claims } of [
    ...ordered.filter((each) => each.override),
    ...ordered.filter((each) => !each.override),
  ])
    for (const { phase, kind } of claims) {
      if (isCombined(phase, kind)) continue;
      const slot = `${phase} ${kind}`;
      const winner = winners.get(slot);
      if (winner === undefined) winners.set(slot, key);
      else lost.push({ phase, kind, loser: key, winner });
    }
  return lost;
}

/** Several policies of the kind apply together. */
export function isCombined(phase: string, kind: string): boolean {
  return phase !== "frontend" && KINDS[kind as PolicyKind].repeatable === true;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
