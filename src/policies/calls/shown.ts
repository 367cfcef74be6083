import type { CalledService, CallPolicies } from "../../ir/policies.ts";
import { shown as backendAuth } from "../backend-auth/shown.ts";
import { shownCallPolicies } from "./shown-policies.ts";

/** The configuration of a policy that asks a service, without the secrets of its calls; `hidden` are names of headers. */
export function shownCalling<Config extends CalledService>(config: Config, hidden: ReadonlySet<string>): Config {
  return { ...config, ...shownPolicies(config, hidden) };
}

const show = shownCallPolicies(backendAuth);

/** `policies` of a service without secrets; nothing when there are none. */
export function shownPolicies(
  { policies }: CalledService,
  hidden: ReadonlySet<string>,
): { readonly policies?: CallPolicies } {
  return policies === undefined ? {} : { policies: show(policies, hidden) as CallPolicies };
}
