import type { FrontendInput } from "../config/schema/frontend.ts";
import type { AccessLog, Tracing } from "../ir/ir.ts";
import type { NetworkExtAuthz } from "../ir/policies.ts";
import { shownAccessLog, shownTracing } from "../policies/calls/shown-collector.ts";
import { shownNetwork } from "../policies/ext-authz/shown.ts";
import { withDurations } from "../policies/shared/shown-durations.ts";
import { shown as shownTcp } from "../policies/tcp/index.ts";
import { REDACTED } from "../trace/redaction.ts";

/** What `frontendPolicies` sets, field by field. */
interface Frontend extends Omit<FrontendInput, "proxy" | "logging" | "networkExtAuthz" | "accessLog" | "tracing"> {
  readonly networkExtAuthz?: NetworkExtAuthz;
  readonly accessLog?: AccessLog;
  readonly tracing?: Tracing;
}

/** Each field has its own entry, so that a new one does not compile until its author has thought of its secrets. */
type Shown = {
  readonly [Field in keyof Frontend]-?: (config: NonNullable<Frontend[Field]>, hidden: ReadonlySet<string>) => unknown;
};

/** For fields with neither secrets nor times. */
const unchanged = (config: unknown): unknown => config;

const SHOWN: Shown = {
  accessLog: shownAccessLog,
  connect: unchanged,
  http: (http) =>
    withDurations(http, "http1IdleTimeout", "headerReadTimeout", "streamIdleTimeout", "maxConnectionDuration"),
  networkAuthorization: unchanged,
  networkExtAuthz: shownNetwork,
  proxyProtocol: unchanged,
  tcp: shownTcp,
  tls: (tls) => withDurations(tls, "handshakeTimeout"),
  tracing: shownTracing,
};

/** A field of `frontendPolicies` for dumps, without secrets and with its times as texts. Nothing is shown of an unknown one. */
export function shownFrontend(field: string, config: unknown, hidden: ReadonlySet<string>): unknown {
  if (!Object.hasOwn(SHOWN, field)) return REDACTED;
  const show = SHOWN[field as keyof Shown] as (config: unknown, hidden: ReadonlySet<string>) => unknown;
  return show(config, hidden);
}
