import type { CalledService, CallPolicies } from "../../ir/policies.ts";
import { shown as backendAuth } from "../backend-auth/index.ts";
import { shown as backendTLS } from "../backend-tls/index.ts";
import { shown as backendTunnel } from "../backend-tunnel/index.ts";
import { shownModifier } from "../shared/header-edits.ts";

/** The configuration of a policy that asks a service, without the secrets of its calls; `hidden` are names of headers. */
export function shownCalling<Config extends CalledService>(config: Config, hidden: ReadonlySet<string>): Config {
  return { ...config, ...shownPolicies(config, hidden) };
}

/** `policies` of a service without secrets; nothing when there are none. */
export function shownPolicies(
  { policies }: CalledService,
  hidden: ReadonlySet<string>,
): { readonly policies?: CallPolicies } {
  if (policies === undefined) return {};
  const { backendAuth: auth, backendTLS: tls, backendTunnel: tunnel, requestHeaderModifier: modifier } = policies;
  const shown = {
    ...policies,
    ...(auth !== undefined && { backendAuth: backendAuth(auth) }),
    ...(tls !== undefined && { backendTLS: backendTLS(tls) }),
    ...(tunnel !== undefined && { backendTunnel: backendTunnel(tunnel) }),
    ...(modifier !== undefined && { requestHeaderModifier: shownModifier(modifier, hidden) }),
  };
  return { policies: shown as CallPolicies };
}
