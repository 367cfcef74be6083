import type { NetworkExtAuthz } from "../../ir/policies.ts";
import { NetworkAuthorizer } from "../../policies/ext-authz/network.ts";
import { NOWHERE } from "../../upstream/callout.ts";
import type { FrontendInput } from "../schema/frontend.ts";
import type { Context } from "./context.ts";
import { fieldPath, refusalBy, translateCallPolicies, withoutUndefined } from "./policies.ts";

const KIND = "networkExtAuthz";

/** `frontendPolicies.networkExtAuthz` as a runtime type; what is wrong with it is reported. undefined = there is none. */
export function translateNetworkExtAuthz(
  { [KIND]: input }: FrontendInput,
  { calledTargets, report }: Pick<Context, "calledTargets" | "report">,
): NetworkExtAuthz | undefined {
  if (input === undefined) return undefined;
  const path = ["frontendPolicies", KIND];
  const { http } = input.protocol;
  const cleaned = { ...(withoutUndefined(input) as object), protocol: { http: withoutUndefined(http) } };
  const config = calledTargets.fill(KIND, cleaned, path, translateCallPolicies) as NetworkExtAuthz;
  const refusal = refusalBy(KIND, () => new NetworkAuthorizer(config, NOWHERE));
  if (refusal !== undefined) report(["frontendPolicies", ...fieldPath(refusal.field)], { message: refusal.message });
  return config;
}
