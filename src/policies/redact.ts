import { REDACTED } from "../trace/redaction.ts";
import { redact as apiKey } from "./api-key/index.ts";
import { redact as backendAuth } from "./backend-auth/redact.ts";
import { redact as backendTLS } from "./backend-tls/index.ts";
import { redact as backendTunnel } from "./backend-tunnel/index.ts";
import { redact as basicAuth } from "./basic-auth/index.ts";
import { redactCalling } from "./calls/redact.ts";
import { isConditional } from "./conditional/index.ts";
import { redact as cors } from "./cors/index.ts";
import { redact as directResponse } from "./direct-response/index.ts";
import { redact as extAuthz } from "./ext-authz/redact.ts";
import { redact as health } from "./health/index.ts";
import { redact as http } from "./http/index.ts";
import { redact as jwtAuth } from "./jwt-auth/index.ts";
import { redact as localRateLimit } from "./local-rate-limit/index.ts";
import { shownOidc } from "./oidc/index.ts";
import type { Authorization, Conditional, PolicySet } from "./policy-set.ts";
import { redact as requestMirror } from "./request-mirror/index.ts";
import { redact as retry } from "./retry/index.ts";
import { redactModifier } from "./shared/header-edits.ts";
import { redact as tcp } from "./tcp/index.ts";
import { redact as timeout } from "./timeout/index.ts";
import { redact as transformations } from "./transformations/redact.ts";

/** One of a kind, or one of its alternatives. */
type Entry<Config> = Config extends Conditional<infer Alternative> ? Alternative : NonNullable<Config>;

/** Each kind has its own entry, so that a new one does not compile until its author has thought of its secrets. */
type Redactors = {
  readonly [Kind in keyof PolicySet]-?: (config: Entry<PolicySet[Kind]>, hidden: ReadonlySet<string>) => unknown;
};

/** For kinds whose configuration has neither secrets nor times. */
const unchanged = (config: unknown): unknown => config;

/** How each kind is redacted; an alternative comes with its condition, which stays. */
const REDACTORS: Redactors = {
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
  extProc: redactCalling,
  health,
  http,
  jwtAuth,
  localRateLimit,
  oidc: shownOidc,
  remoteRateLimit: redactCalling,
  requestHeaderModifier: redactModifier,
  requestMirror,
  requestRedirect: unchanged,
  responseHeaderModifier: redactModifier,
  retry,
  sessionAffinity: unchanged,
  tcp,
  timeout,
  transformations,
  urlRewrite: unchanged,
};

/**
 * A policy's configuration for dumps, without secrets and with its times as texts; `hidden` are names of headers whose values
 * are not redacted. Nothing is shown of a kind that is not in the table.
 */
export function redactPolicy(kind: string, config: unknown, hidden: ReadonlySet<string>): unknown {
  if (!Object.hasOwn(REDACTORS, kind)) return REDACTED;
  const show = (REDACTORS as Readonly<Record<string, (config: unknown, hidden: ReadonlySet<string>) => unknown>>)[kind];
  if (show === undefined) return REDACTED;
  if (!isConditional(config)) return show(config, hidden);
  return { conditional: config.conditional.map((entry) => show(entry, hidden)) };
}

/** The same for `effectivePolicy` of traces, with alternatives in the order in which they are tried. */
export function effectivePolicy(kind: string, config: unknown, hidden: ReadonlySet<string>): unknown {
  if (!isConditional(config)) return readable(kind, redactPolicy(kind, config, hidden));
  return config.conditional.map(({ condition, ...policy }) => ({
    pol: readable(kind, redactPolicy(kind, policy, hidden)),
    ...(condition !== undefined && { condition }),
  }));
}

/** Rules by their mode, as the configuration has them. */
function readable(kind: string, redacted: unknown): unknown {
  if (kind !== "authorization") return redacted;
  return { rules: (redacted as Authorization).rules.map(({ mode, expression }) => ({ [mode]: expression })) };
}
