/** Redaction of `policies` of a service. Apart from `redact.ts`, because token endpoints, which `backendAuth` calls, use it too. */
import { redactModifier } from "../contract/header-edits.ts";
import type { CallPolicies } from "../schema/call.ts";
import { redactTransformations } from "../transformations/index.ts";
import {
  redactTls as backendTLS,
  redactTunnel as backendTunnel,
  redactHttp as http,
  redactTcp as tcp,
} from "../upstream-settings/index.ts";

type Show<Config> = (config: Config, hidden: ReadonlySet<string>) => unknown;
type ShownCall = { readonly [Kind in keyof CallPolicies]-?: Show<NonNullable<CallPolicies[Kind]>> };

/**
 * Redacts the policies of calls, given the redaction of `backendAuth`. The table is exhaustive, so a new kind does not compile
 * until its author has decided about its secrets.
 */
export function redactCallPolicies(backendAuth: ShownCall["backendAuth"]): Show<CallPolicies> {
  const table: ShownCall = {
    backendAuth,
    backendTLS,
    backendTunnel,
    http,
    requestHeaderModifier: redactModifier,
    tcp,
    transformations: redactTransformations,
  };
  return (policies, hidden) => {
    const redacted = Object.entries(table).flatMap(([kind, show]) => {
      const config = policies[kind as keyof CallPolicies];
      return config === undefined ? [] : [[kind, (show as Show<unknown>)(config, hidden)]];
    });
    return Object.fromEntries(redacted);
  };
}
