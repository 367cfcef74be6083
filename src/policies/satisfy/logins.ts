import type { Oidc } from "../oidc/schema.ts";
import type { PolicySet } from "../policy-set.ts";

/** Every login that the policies of one place can ask for, alone or as an alternative. */
export function loginsIn({ oidc, satisfy = [] }: PolicySet): readonly Oidc[] {
  const alternatives = satisfy.flatMap((level) => level.any);
  return [{ oidc }, ...alternatives].flatMap((each) => each.oidc ?? []);
}
