import type { AccessLog, Tracing } from "../ir/ir.ts";
import type { Conditional, NetworkExtAuthz, PolicySet } from "../ir/policies.ts";
import { REDACTED } from "../trace/redaction.ts";
import { shown as apiKey } from "./api-key/index.ts";
import { shown as backendAuth } from "./backend-auth/shown.ts";
import { shown as backendTLS } from "./backend-tls/index.ts";
import { shown as backendTunnel } from "./backend-tunnel/index.ts";
import { shown as basicAuth } from "./basic-auth/index.ts";
import { shownCalling } from "./calls/shown.ts";
import { shownAccessLog, shownTracing } from "./calls/shown-collector.ts";
import { isConditional } from "./conditional/index.ts";
import { shown as directResponse } from "./direct-response/index.ts";
import { shown as extAuthz, shownNetwork } from "./ext-authz/shown.ts";
import { shown as jwtAuth } from "./jwt-auth/index.ts";
import { shownOidc } from "./oidc/index.ts";
import { shown as requestMirror } from "./request-mirror/index.ts";
import { shownModifier } from "./shared/header-edits.ts";
import { shown as transformations } from "./transformations/shown.ts";

/** Everything that dumps show as a policy: policies, and what `frontendPolicies` sets. */
interface Kinds extends PolicySet {
  readonly connect?: unknown;
  readonly networkAuthorization?: unknown;
  readonly proxyProtocol?: unknown;
  readonly tls?: unknown;
  readonly networkExtAuthz?: NetworkExtAuthz;
  readonly accessLog?: AccessLog;
  readonly tracing?: Tracing;
}

/** One of a kind, or one of its alternatives. */
type Entry<Config> = Config extends Conditional<infer Alternative> ? Alternative : NonNullable<Config>;

/** Each kind has its own entry, so that a new one does not compile until its author has thought of its secrets. */
type Shown = {
  readonly [Kind in keyof Kinds]-?: (config: Entry<Kinds[Kind]>, hidden: ReadonlySet<string>) => unknown;
};

/** For kinds whose configuration has no secrets. */
const unchanged = (config: unknown): unknown => config;

/** How each kind is shown; an alternative comes with its condition, which stays. */
const SHOWN: Shown = {
  accessLog: shownAccessLog,
  apiKey,
  authorization: unchanged,
  backendAuth,
  backendTLS,
  backendTunnel,
  basicAuth,
  buffer: unchanged,
  connect: unchanged,
  cors: unchanged,
  csrf: unchanged,
  delay: unchanged,
  directResponse,
  extAuthz,
  extProc: shownCalling,
  health: unchanged,
  http: unchanged,
  jwtAuth,
  localRateLimit: unchanged,
  networkAuthorization: unchanged,
  networkExtAuthz: shownNetwork,
  oidc: shownOidc,
  proxyProtocol: unchanged,
  remoteRateLimit: shownCalling,
  requestHeaderModifier: shownModifier,
  requestMirror,
  requestRedirect: unchanged,
  responseHeaderModifier: shownModifier,
  retry: unchanged,
  sessionAffinity: unchanged,
  tcp: unchanged,
  timeout: unchanged,
  tls: unchanged,
  tracing: shownTracing,
  transformations,
  urlRewrite: unchanged,
};

/**
 * A policy's configuration without secrets, for dumps; `hidden` are names of headers whose values are not shown. Of a kind
 * that is not in the table nothing is shown.
 */
export function shownPolicy(kind: string, config: unknown, hidden: ReadonlySet<string>): unknown {
  if (!Object.hasOwn(SHOWN, kind)) return REDACTED;
  const show = (SHOWN as Readonly<Record<string, (config: unknown, hidden: ReadonlySet<string>) => unknown>>)[kind];
  if (show === undefined) return REDACTED;
  if (!isConditional(config)) return show(config, hidden);
  return { conditional: config.conditional.map((entry) => show(entry, hidden)) };
}
