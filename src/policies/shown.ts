import type { AccessLog, Tracing } from "../ir/ir.ts";
import type { Conditional, NetworkExtAuthz, PolicySet } from "../ir/policies.ts";
import { shown as apiKey } from "./api-key/index.ts";
import { shown as backendAuth } from "./backend-auth/index.ts";
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
import { shown as transformations } from "./transformations/index.ts";

/** Policies, and those settings of connections that name services. */
interface Kinds extends PolicySet {
  readonly networkExtAuthz?: NetworkExtAuthz;
  readonly accessLog?: AccessLog;
  readonly tracing?: Tracing;
}

/** One of a kind, or one of its alternatives. */
type Entry<Config> = Config extends Conditional<infer Alternative> ? Alternative : NonNullable<Config>;

type Shown = {
  readonly [Kind in keyof Kinds]: (config: Entry<Kinds[Kind]>, hidden: ReadonlySet<string>) => unknown;
};

/** How policies with secrets in their configuration are shown; an alternative comes with its condition, which stays. */
const SHOWN: Shown = {
  accessLog: shownAccessLog,
  apiKey,
  backendAuth,
  backendTLS,
  backendTunnel,
  basicAuth,
  directResponse,
  extAuthz,
  extProc: shownCalling,
  jwtAuth,
  networkExtAuthz: shownNetwork,
  oidc: shownOidc,
  remoteRateLimit: shownCalling,
  requestHeaderModifier: shownModifier,
  requestMirror,
  responseHeaderModifier: shownModifier,
  tracing: shownTracing,
  transformations,
};

/** A policy's configuration without secrets, for dumps; `hidden` are names of headers whose values are not shown. */
export function shownPolicy(kind: string, config: unknown, hidden: ReadonlySet<string>): unknown {
  const show = (SHOWN as Readonly<Record<string, (config: unknown, hidden: ReadonlySet<string>) => unknown>>)[kind];
  if (show === undefined) return config;
  if (!isConditional(config)) return show(config, hidden);
  return { conditional: config.conditional.map((entry) => show(entry, hidden)) };
}
