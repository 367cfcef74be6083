import type { CalledService, CallPolicies } from "../../ir/policies.ts";
import { shown as backendAuth } from "../backend-auth/shown.ts";
import { shown as backendTLS } from "../backend-tls/index.ts";
import { shown as backendTunnel } from "../backend-tunnel/index.ts";
import { shownModifier } from "../shared/header-edits.ts";

/** The configuration of a policy that asks a service, without the secrets of its calls; `hidden` are names of headers. */
export function shownCalling<Config extends CalledService>(config: Config, hidden: ReadonlySet<string>): Config {
  return { ...config, ...shownPolicies(config, hidden) };
}

type ShownCall = {
  readonly [Kind in keyof CallPolicies]-?: (
    config: NonNullable<CallPolicies[Kind]>,
    hidden: ReadonlySet<string>,
  ) => unknown;
};

const unchanged = (config: unknown): unknown => config;

/** As for policies of requests, each kind has its own entry. */
const SHOWN: ShownCall = {
  backendAuth,
  backendTLS,
  backendTunnel,
  http: unchanged,
  requestHeaderModifier: shownModifier,
  tcp: unchanged,
};

/** `policies` of a service without secrets; nothing when there are none. */
export function shownPolicies(
  { policies }: CalledService,
  hidden: ReadonlySet<string>,
): { readonly policies?: CallPolicies } {
  if (policies === undefined) return {};
  const shown = Object.entries(SHOWN).flatMap(([kind, show]) => {
    const config = policies[kind as keyof CallPolicies];
    return config === undefined
      ? []
      : [[kind, (show as (c: unknown, h: ReadonlySet<string>) => unknown)(config, hidden)]];
  });
  return { policies: Object.fromEntries(shown) as CallPolicies };
}
