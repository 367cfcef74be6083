import type { Oidc } from "../oidc/schema.ts";
import type { Satisfy } from "./schema.ts";

interface Policies {
  readonly oidc?: Oidc | undefined;
  readonly satisfy?: Satisfy | undefined;
}

/** Every login that the policies of one place can ask for, alone or as an alternative. */
export function loginsIn({ oidc, satisfy = [] }: Policies): readonly Oidc[] {
  const alternatives = satisfy.flatMap((level) => level.any);
  return [{ oidc }, ...alternatives].flatMap((each) => each.oidc ?? []);
}
