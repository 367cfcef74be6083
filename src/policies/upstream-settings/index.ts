/**
 * Upstream settings: what users write among the policies of a backend but connection pools and balancers apply, such as TLS and
 * outlier detection. This is their side of dumps, traces, merging and checks; the room `upstream` reads the values. They have no
 * phase order and no hooks (docs/decisions/0033-policy-modules.md).
 */
import { withDurations } from "../../base/durations.ts";
import { REDACTED } from "../../base/redaction.ts";
import { type CelEnvironment, CelError, readsBody } from "../../cel/index.ts";
import type { BackendTls } from "../../tls/tls-settings.ts";
import type {
  BackendHttp,
  BackendTcp,
  BackendTunnel,
  Health,
  RetryBudgetSettings,
  SettingKind,
  UpstreamSettings,
} from "../../upstream/settings/settings.ts";
import { within } from "../contract/policy-error.ts";
import type { CallUse, CallUseOf, Hidden, Kind } from "../define/policy.ts";

/** A setting for configurations, dumps and traces. */
interface UpstreamSetting<Name extends string, Config> extends Kind<Name, Config> {
  /** Checks what the schema cannot. Throws a PolicyError or CelError; paths begin with the kind. */
  check(config: Config, cel: CelEnvironment): void;
}

interface Definition<Config, Use extends CallUse> {
  readonly calls?: Use;
  readonly redact: (config: Config, hidden: Hidden) => unknown;
  readonly traceKey?: string;
  readonly check?: (config: Config, cel: CelEnvironment) => void;
}

function setting<Name extends string, Config, Use extends CallUse = undefined>(
  kind: Name,
  definition: Definition<Config, Use>,
): UpstreamSetting<Name, Config> & { readonly calls?: Use } {
  const { redact, check } = definition;
  return {
    ...definition,
    kind,
    phases: ["backend"],
    traceView: redact,
    merge: (_outer, inner) => inner,
    check: (config, cel) => within([kind], () => check?.(config, cel)),
  };
}

/** Every setting. `redact` is required: private keys and credentials for proxies are secrets. */
export const UPSTREAM_SETTINGS: {
  readonly [Name in SettingKind]: UpstreamSetting<Name, UpstreamSettings[Name]> & CallUseOf<Name>;
} = {
  backendTLS: setting("backendTLS", { redact: redactTls, traceKey: "backendTls", calls: "apply" }),
  http: setting("http", { redact: redactHttp, calls: "apply" }),
  tcp: setting("tcp", { redact: redactTcp, calls: "apply" }),
  backendTunnel: setting("backendTunnel", { redact: redactTunnel, traceKey: "tunnel", calls: "apply" }),
  health: setting("health", { redact: redactHealth, check: checkHealth }),
  sessionAffinity: setting("sessionAffinity", { redact: (config) => config }),
  retryBudget: setting("retryBudget", { redact: redactBudget }),
};

/** Whether a key among the policies of a backend is a setting. */
export function isSetting(kind: string): kind is SettingKind {
  return Object.hasOwn(UPSTREAM_SETTINGS, kind);
}

/** Hides the private key; certificates and CAs are public. */
export function redactTls(config: BackendTls): BackendTls {
  return config.key === undefined ? config : { ...config, key: REDACTED };
}

/** Hides the credential of Proxy-Authorization and the key of the proxy's TLS. */
export function redactTunnel(config: BackendTunnel): BackendTunnel {
  return {
    ...config,
    ...(config.authorization !== undefined && { authorization: REDACTED }),
    ...(config.tls !== undefined && { tls: redactTls(config.tls) }),
  };
}

/** Has no secrets; formats durations. */
export function redactHttp(config: BackendHttp): unknown {
  return withDurations(config, "requestTimeout");
}

/** Has no secrets; formats durations. */
export function redactTcp({ keepalives, ...config }: BackendTcp): unknown {
  return {
    ...withDurations(config, "connectTimeout"),
    ...(keepalives !== undefined && { keepalives: withDurations(keepalives, "time", "interval") }),
  };
}

function redactHealth({ eviction, active, ...others }: Health): unknown {
  return {
    ...others,
    ...(eviction !== undefined && { eviction: withDurations(eviction, "duration") }),
    ...(active !== undefined && { active: withDurations(active, "interval", "timeout") }),
  };
}

function redactBudget({ minRetryRate, ...config }: RetryBudgetSettings): unknown {
  return { ...withDurations(config, "interval"), minRetryRate: withDurations(minRetryRate, "interval") };
}

/** Outlier detection evaluates the expression on the response head; buffering every body for it would cost too much. */
function checkHealth({ unhealthyExpression: text }: Health, cel: CelEnvironment): void {
  if (text === undefined) return;
  if (readsBody(cel.compileCondition(text, "response"), "response"))
    throw new CelError("outlier detection only sees the head of a response: remove response.body", text, 0);
}
