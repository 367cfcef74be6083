import type { FrontendInput } from "../config/schema/frontend.ts";
import type { AccessLog, Collector, Tracing } from "../ir/ir.ts";
import { redactCalling } from "../policies/calls/redact.ts";
import { redactNetwork } from "../policies/ext-authz/index.ts";
import type { NetworkExtAuthz } from "../policies/ext-authz/network-schema.ts";
import { withDurations } from "../policies/shared/shown-durations.ts";
import { redactTcp } from "../policies/upstream-settings/index.ts";
import { REDACTED } from "../trace/redaction.ts";

/** What `frontendPolicies` sets, field by field. */
interface Frontend extends Omit<FrontendInput, "proxy" | "logging" | "networkExtAuthz" | "accessLog" | "tracing"> {
  readonly networkExtAuthz?: NetworkExtAuthz;
  readonly accessLog?: AccessLog;
  readonly tracing?: Tracing;
}

/** Each field has its own entry, so that a new one does not compile until its author has thought of its secrets. */
type Redactors = {
  readonly [Field in keyof Frontend]-?: (config: NonNullable<Frontend[Field]>, hidden: ReadonlySet<string>) => unknown;
};

/** For fields with neither secrets nor times. */
const unchanged = (config: unknown): unknown => config;

const REDACTORS: Redactors = {
  accessLog: redactAccessLog,
  connect: unchanged,
  http: (http) =>
    withDurations(http, "http1IdleTimeout", "headerReadTimeout", "streamIdleTimeout", "maxConnectionDuration"),
  networkAuthorization: unchanged,
  networkExtAuthz: redactNetwork,
  proxyProtocol: unchanged,
  tcp: redactTcp,
  tls: (tls) => withDurations(tls, "handshakeTimeout"),
  tracing: redactTracing,
};

/** A field of `frontendPolicies` for dumps, without secrets and with its times as texts. Nothing is shown of an unknown one. */
export function shownFrontend(field: string, config: unknown, hidden: ReadonlySet<string>): unknown {
  if (!Object.hasOwn(REDACTORS, field)) return REDACTED;
  const show = REDACTORS[field as keyof Redactors] as (config: unknown, hidden: ReadonlySet<string>) => unknown;
  return show(config, hidden);
}

/** Settings of exports as the configuration has them: beside the fields that name the collector. */
function redactTracing({ collector, ...others }: Tracing, hidden: ReadonlySet<string>): unknown {
  return { ...redactCollector(collector, hidden), ...others };
}

function redactAccessLog({ otlp, ...own }: AccessLog, hidden: ReadonlySet<string>): unknown {
  if (otlp === undefined) return own;
  const { collector, filter, ...fields } = otlp;
  const { resources: _none, ...shown } = redactCollector(collector, hidden);
  return { ...own, otlp: { ...shown, ...(filter !== undefined && { filter }), fields } };
}

/** What is added to exports is credentials, whatever the headers are called. */
function redactCollector(collector: Collector, hidden: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  const { add = {}, set = {} } = collector.policies?.requestHeaderModifier ?? {};
  const names = [...Object.keys(add), ...Object.keys(set)].map((name) => name.toLowerCase());
  return redactCalling(collector, new Set([...hidden, ...names]));
}
