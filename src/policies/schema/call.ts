import type { z } from "zod";
import type { Milliseconds } from "../../base/durations.ts";
import type { Target } from "../../upstream/settings/target.ts";
import { schema as backendAuth } from "./backend-auth.ts";
import { callPolicySchema } from "./call-policies.ts";
import { duration, service } from "./fields.ts";
import type { ConfigOf } from "./resolved.ts";

const callPolicies = callPolicySchema(backendAuth).meta({
  id: "CallPolicies",
  description:
    "Policies of calls to the service. They take precedence over the same kinds of a named backend and of `policies[]`.",
});

/** Fields of policies that call a service. `what` documents the timeout. */
export function calledService(what: string) {
  return {
    ...service,
    policies: callPolicies.optional(),
    timeout: duration
      .optional()
      .describe(`${what} Default: \`http.requestTimeout\` of the policies in effect, else 2s.`),
  };
}

export type CallPolicies = ConfigOf<typeof callPolicies>;

/** A service that the gateway calls for a policy. */
export interface CalledService {
  readonly target: Target;
  readonly policies?: CallPolicies | undefined;
}

/** As written by users. */
type CallPoliciesInput = z.output<typeof callPolicies>;

/** The fields of `calledService`, as written by users. */
export interface CalledServiceInput {
  readonly host?: string | undefined;
  readonly service?: { readonly name: string; readonly port: number } | undefined;
  readonly backend?: string | undefined;
  readonly policies?: CallPoliciesInput | undefined;
  readonly timeout?: Milliseconds | undefined;
}
