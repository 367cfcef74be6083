import type { Authorization, Conditional, PolicySet } from "../ir/policies.ts";
import { REDACTED } from "../trace/redaction.ts";
import { shown as apiKey } from "./api-key/index.ts";
import { shown as backendAuth } from "./backend-auth/shown.ts";
import { shown as backendTLS } from "./backend-tls/index.ts";
import { shown as backendTunnel } from "./backend-tunnel/index.ts";
import { shown as basicAuth } from "./basic-auth/index.ts";
import { shownCalling } from "./calls/shown.ts";
import { isConditional } from "./conditional/index.ts";
import { shown as cors } from "./cors/index.ts";
import { shown as directResponse } from "./direct-response/index.ts";
import { shown as extAuthz } from "./ext-authz/shown.ts";
import { shown as health } from "./health/index.ts";
import { shown as http } from "./http/index.ts";
import { shown as jwtAuth } from "./jwt-auth/index.ts";
import { shown as localRateLimit } from "./local-rate-limit/index.ts";
import { shownOidc } from "./oidc/index.ts";
import { shown as requestMirror } from "./request-mirror/index.ts";
import { shown as retry } from "./retry/index.ts";
import { shownModifier } from "./shared/header-edits.ts";
import { shown as tcp } from "./tcp/index.ts";
import { shown as timeout } from "./timeout/index.ts";
import { shown as transformations } from "./transformations/shown.ts";

/** One of a kind, or one of its alternatives. */
type Entry<Config> = Config extends Conditional<infer Alternative> ? Alternative : NonNullable<Config>;

/** Each kind has its own entry, so that a new one does not compile until its author has thought of its secrets. */
type Shown = {
  readonly [Kind in keyof PolicySet]-?: (config: Entry<PolicySet[Kind]>, hidden: ReadonlySet<string>) => unknown;
};

/** For kinds whose configuration has neither secrets nor times. */
const unchanged = (config: unknown): unknown => config;

/** How each kind is shown; an alternative comes with its condition, which stays. */
const SHOWN: Shown = {
  apiKey,
  authorization: unchanged,
  backendAuth,
  backendTLS,
  backendTunnel,
  basicAuth,
  buffer: unchanged,
  cors,
  csrf: unchanged,
  delay: unchanged,
  directResponse,
  extAuthz,
  extProc: shownCalling,
  health,
  http,
  jwtAuth,
  localRateLimit,
  oidc: shownOidc,
  remoteRateLimit: shownCalling,
  requestHeaderModifier: shownModifier,
  requestMirror,
  requestRedirect: unchanged,
  responseHeaderModifier: shownModifier,
  retry,
  sessionAffinity: unchanged,
  tcp,
  timeout,
  transformations,
  urlRewrite: unchanged,
};

/**
 * A policy's configuration for dumps, without secrets and with its times as texts; `hidden` are names of headers whose values
 * are not shown. Nothing is shown of a kind that is not in the table.
 */
export function shownPolicy(kind: string, config: unknown, hidden: ReadonlySet<string>): unknown {
  if (!Object.hasOwn(SHOWN, kind)) return REDACTED;
  const show = (SHOWN as Readonly<Record<string, (config: unknown, hidden: ReadonlySet<string>) => unknown>>)[kind];
  if (show === undefined) return REDACTED;
  if (!isConditional(config)) return show(config, hidden);
  return { conditional: config.conditional.map((entry) => show(entry, hidden)) };
}

/** The same for `effectivePolicy` of traces, with alternatives in the order in which they are tried. */
export function effectivePolicy(kind: string, config: unknown, hidden: ReadonlySet<string>): unknown {
  if (!isConditional(config)) return readable(kind, shownPolicy(kind, config, hidden));
  return config.conditional.map(({ condition, ...policy }) => ({
    pol: readable(kind, shownPolicy(kind, policy, hidden)),
    ...(condition !== undefined && { condition }),
  }));
}

/** Rules by their mode, as the configuration has them. */
function readable(kind: string, shown: unknown): unknown {
  if (kind !== "authorization") return shown;
  return { rules: (shown as Authorization).rules.map(({ mode, expression }) => ({ [mode]: expression })) };
}
