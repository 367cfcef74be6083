import type { CallPolicies } from "../../ir/policies.ts";
import { shown as backendTLS } from "../backend-tls/index.ts";
import { shown as backendTunnel } from "../backend-tunnel/index.ts";
import { shown as http } from "../http/index.ts";
import { shownModifier } from "../shared/header-edits.ts";
import { shown as tcp } from "../tcp/index.ts";
import { shown as transformations } from "../transformations/shown.ts";

type Show<Config> = (config: Config, hidden: ReadonlySet<string>) => unknown;
type ShownCall = { readonly [Kind in keyof CallPolicies]-?: Show<NonNullable<CallPolicies[Kind]>> };

/**
 * Shows the policies of calls without secrets, given how `backendAuth` is shown. Each kind has its own entry, so that a new one
 * does not compile until its author has thought of its secrets.
 */
export function shownCallPolicies(backendAuth: ShownCall["backendAuth"]): Show<CallPolicies> {
  const table: ShownCall = {
    backendAuth,
    backendTLS,
    backendTunnel,
    http,
    requestHeaderModifier: shownModifier,
    tcp,
    transformations,
  };
  return (policies, hidden) => {
    const shown = Object.entries(table).flatMap(([kind, show]) => {
      const config = policies[kind as keyof CallPolicies];
      return config === undefined ? [] : [[kind, (show as Show<unknown>)(config, hidden)]];
    });
    return Object.fromEntries(shown);
  };
}
