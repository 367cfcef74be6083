import type { PolicySet } from "./policy-set.ts";

/** The set without policies; always this object, which costs nothing where routes are many. */
export const NO_POLICY_SET: PolicySet = Object.freeze({});

/**
 * Later sets win, kind by kind (reference 3); what accumulates instead is in `COMBINED`. Most sets are empty: what need not
 * be made again is returned as it is.
 */
export function mergePolicies(...sets: readonly PolicySet[]): PolicySet {
  const [only = NO_POLICY_SET, ...others] = sets.filter((set) => Object.keys(set).length > 0);
  return others.reduce<PolicySet>(mergeTwo, only);
}

function mergeTwo(earlier: PolicySet, later: PolicySet): PolicySet {
  const combined = COMBINED.map((combine) => combine(earlier, later));
  return Object.assign({}, earlier, later, ...combined) as PolicySet;
}

type Combine = (earlier: PolicySet, later: PolicySet) => PolicySet;

/** Kinds of which a later value does not simply replace an earlier one. */
const COMBINED: readonly Combine[] = [
  // No level can undo the rules of another.
  ({ authorization: earlier }, { authorization: later }) =>
    earlier === undefined || later === undefined
      ? {}
      : { authorization: { rules: [...earlier.rules, ...later.rules] } },
  // Whoever is nearest to the gateway knows what it can hold.
  ({ buffer }) => (buffer === undefined ? {} : { buffer }),
];
