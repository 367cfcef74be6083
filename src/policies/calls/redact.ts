import { withDurations } from "../../base/durations.ts";
import { redact as backendAuth } from "../backend-auth/redact.ts";
import { redactCallPolicies } from "./redact-policies.ts";
import type { CalledService } from "./schema.ts";

/** The configuration of a policy that calls a service, without the secrets of its calls; `hidden` are names of headers. */
export function redactCalling(
  config: CalledService & { readonly timeout: number },
  hidden: ReadonlySet<string>,
): Readonly<Record<string, unknown>> {
  return { ...withDurations(config, "timeout"), ...redactPolicies(config, hidden) };
}

const show = redactCallPolicies(backendAuth);

/** `policies` of a service without secrets; nothing when there are none. */
export function redactPolicies(
  { policies }: CalledService,
  hidden: ReadonlySet<string>,
): { readonly policies?: unknown } {
  return policies === undefined ? {} : { policies: show(policies, hidden) };
}
