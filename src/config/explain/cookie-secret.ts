import type { Ir } from "../../ir/ir.ts";
import { COOKIE_SECRET, parseCookieKey } from "../../policies/oidc/cookie-key.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { Problem } from "../parse/document.ts";

/** What keeps `oidc` from sealing its cookies; undefined when there is a key, or no such policy. */
export function cookieSecretProblem(ir: Ir, env: Readonly<Record<string, string | undefined>>): Problem | undefined {
  const secret = env[COOKIE_SECRET] ?? "";
  if (parseCookieKey(secret) !== undefined || !usesOidc(ir)) return undefined;
  const expected = "64 hexadecimal digits, such as openssl rand -hex 32 prints";
  if (secret === "")
    return {
      message: `${COOKIE_SECRET} is required when oidc is configured`,
      expected: `an environment variable of ${expected}`,
    };
  // Never the value: it is a secret, if not a good one.
  return { message: `environment variable ${COOKIE_SECRET} is not valid`, expected };
}

function usesOidc({ binds, routeGroups }: Ir): boolean {
  const listeners = binds.flatMap((bind) => bind.listeners);
  const routes = [...listeners, ...routeGroups].flatMap((owner) => owner.routes);
  const has = ({ policies }: { readonly policies: PolicySet }): boolean => policies.oidc !== undefined;
  return listeners.some(has) || routes.some(has);
}
