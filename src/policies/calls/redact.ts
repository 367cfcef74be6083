import { withDurations } from "../../base/durations.ts";
import { redact as backendAuth } from "../backend-auth/redact.ts";
import { redactCallPolicies } from "../backend-auth/redact-call-policies.ts";
import type { CalledService } from "../schema/call.ts";

/** Redacts a policy that calls a service, and formats its timeout. `hidden`: names of headers with secret values. */
export function redactCalling(
  config: CalledService & { readonly timeout: number },
  hidden: ReadonlySet<string>,
): Readonly<Record<string, unknown>> {
  return { ...withDurations(config, "timeout"), ...redactPolicies(config, hidden) };
}

const show = redactCallPolicies(backendAuth);

/** Redacted `policies` of a service; absent if it has none. */
export function redactPolicies(
  { policies }: CalledService,
  hidden: ReadonlySet<string>,
): { readonly policies?: unknown } {
  return policies === undefined ? {} : { policies: show(policies, hidden) };
}
