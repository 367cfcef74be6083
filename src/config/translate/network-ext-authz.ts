import { prepareNetworkAuthz } from "../../policies/ext-authz/network.ts";
import { PolicyError, within } from "../../policies/policy-error.ts";
import type { NetworkExtAuthz } from "../../policies/policy-set.ts";
import type { FrontendInput } from "../schema/frontend.ts";
import type { Context, Path } from "./context.ts";
import { reportProblem, translateCallPolicies, withoutUndefined } from "./policies.ts";
import type { Report } from "./report.ts";

const KIND = "networkExtAuthz";

/** `frontendPolicies.networkExtAuthz` as a runtime type; what is wrong with it is reported. undefined = there is none. */
export function translateNetworkExtAuthz(
  { [KIND]: input }: FrontendInput,
  { calledTargets, report, cel }: Pick<Context, "calledTargets" | "report" | "cel">,
): NetworkExtAuthz | undefined {
  if (input === undefined) return undefined;
  const path = ["frontendPolicies", KIND];
  const { includeRequestHeaders, includeRequestBody, failureMode, protocol, ...others } = input;
  const { redirect, includeResponseHeaders, ...http } = "http" in protocol ? protocol.http : NO_HTTP;
  tellUseless({ includeRequestHeaders, includeRequestBody }, path, report);
  tellUseless({ redirect, includeResponseHeaders }, [...path, "protocol", "http"], report);
  const cleaned = {
    ...(withoutUndefined(others) as object),
    // Refused clients get no answer that could have a status.
    failureMode: failureMode === "allow" ? "allow" : "deny",
    protocol: "grpc" in protocol ? { grpc: withoutUndefined(protocol.grpc) } : { http: withoutUndefined(http) },
  };
  const config = calledTargets.fill(KIND, cleaned, path, translateCallPolicies) as NetworkExtAuthz;
  try {
    within([KIND], () => prepareNetworkAuthz(config, cel));
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    for (const problem of error.problems) reportProblem(problem, ["frontendPolicies"], report);
  }
  return config;
}

const NO_HTTP = { redirect: undefined, includeResponseHeaders: undefined };

/** Warns of fields that `extAuthz` has and that are about a request. */
function tellUseless(fields: Readonly<Record<string, unknown>>, path: Path, report: Report): void {
  for (const [field, value] of Object.entries(fields))
    if (value !== undefined)
      report([...path, field], {
        message: "has no effect here: there is no request yet, and refused clients get no response; use extAuthz",
        warning: true,
      });
}
