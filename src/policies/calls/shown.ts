import type { CalledService } from "../../ir/policies.ts";
import { shown as backendAuth } from "../backend-auth/shown.ts";
import { withDurations } from "../shared/shown-durations.ts";
import { shownCallPolicies } from "./shown-policies.ts";

/** The configuration of a policy that calls a service, without the secrets of its calls; `hidden` are names of headers. */
export function shownCalling(
  config: CalledService & { readonly timeout: number },
  hidden: ReadonlySet<string>,
): Readonly<Record<string, unknown>> {
  return { ...withDurations(config, "timeout"), ...shownPolicies(config, hidden) };
}

const show = shownCallPolicies(backendAuth);

/** `policies` of a service without secrets; nothing when there are none. */
export function shownPolicies(
  { policies }: CalledService,
  hidden: ReadonlySet<string>,
): { readonly policies?: unknown } {
  return policies === undefined ? {} : { policies: show(policies, hidden) };
}
