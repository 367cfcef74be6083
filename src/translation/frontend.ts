import type { Origin } from "../base/origin.ts";
import type { Path } from "../base/paths.ts";
import type { Http2Limits } from "../http/stream.ts";
import type {
  AccessLog,
  Bind,
  Collector,
  Frontend,
  FrontendOrigins,
  NetworkRule,
  TargetedPolicy,
  Tracing,
} from "../ir/ir.ts";
import { below } from "../ir/origins.ts";
import { PolicyError, within } from "../policies/contract/policy-error.ts";
import { defined } from "../policies/contract/resolver.ts";
import { prepareNetworkAuthz } from "../policies/ext-authz/network.ts";
import type { NetworkExtAuthz } from "../policies/ext-authz/network-schema.ts";
import type { LogFields } from "../telemetry/settings.ts";
import type { CallContext } from "./called-targets.ts";
import { reportProblem, translateCallPolicies, translatePolicies } from "./policies.ts";
import type { Report } from "./problems/problem.ts";
import { FRONTEND_ALIASES, type FrontendInput, frontendHttp, frontendTcp, proxyProtocol } from "./schema/frontend.ts";
import { type SettingsInput, settings } from "./schema/settings.ts";
import type { AccessLogExportInput, TracingInput } from "./schema/telemetry.ts";

interface NetworkRuleInput {
  readonly allow?: string | undefined;
  readonly deny?: string | undefined;
  readonly require?: string | undefined;
}

const HTTP = frontendHttp.parse({});
const TCP = frontendTcp.parse({});
const PROXY_PROTOCOL = proxyProtocol.parse({});

/** The settings that call services or name files, as runtime types. */
type Calling = Pick<Frontend, "ipAccess" | "networkExtAuthz" | "accessLog" | "tracing">;

/**
 * Those of `input` that call services or name files. `former`: what a configuration file says for them in other places, `tracing` at `tracingPath`.
 * Problems are reported.
 */
export function translateCalling(
  input: FrontendInput,
  context: CallContext,
  former: { readonly logging: SettingsInput["logging"]; readonly tracing?: TracingInput | undefined } = NOTHING_FORMER,
): Calling {
  const { ipAccess } = translatePolicies(
    defined({ ipAccess: input.ipAccess }),
    "gateway",
    ["frontendPolicies"],
    context,
  );
  const networkExtAuthz = translateNetworkExtAuthz(input, context);
  const accessLog = translateAccessLog(input, former.logging, context);
  const { tracing = former.tracing } = input;
  const tracingPath = input.tracing === undefined ? ["config", "tracing"] : ["frontendPolicies", "tracing"];
  return {
    ...(ipAccess !== undefined && { ipAccess }),
    ...(networkExtAuthz !== undefined && { networkExtAuthz }),
    ...(accessLog !== undefined && { accessLog }),
    ...(tracing !== undefined && { tracing: translateTracing(tracing, tracingPath, context) }),
  };
}

const NOTHING_FORMER = { logging: settings.parse({}).logging };

/** Where the fields of `input` are, which is written at `around`. */
export function originsOfFrontend(input: FrontendInput, around: Origin): FrontendOrigins {
  const { networkAuthorization, ...others } = input;
  const rules = networkAuthorization?.rules.map((_, i) => below(around, ["networkAuthorization", "rules", i]));
  const entries = Object.entries(others).flatMap(([field, value]) =>
    value === undefined ? [] : [[NAMES.get(field) ?? field, [below(around, [field])]]],
  );
  return { ...Object.fromEntries(entries), ...(rules !== undefined && { networkAuthorization: rules }) };
}

const NAMES: ReadonlyMap<string, string> = new Map(FRONTEND_ALIASES);

/** The settings of connections, for every bind. */
export function translateFrontend(input: FrontendInput, calling: Calling, origins: FrontendOrigins): Frontend {
  const { http = HTTP, tcp = TCP, proxyProtocol = input.proxy, connect, networkAuthorization } = input;
  return {
    maxBufferSize: http.maxBufferSize,
    maxHeadSize: http.maxHeadSize,
    maxHeaders: http.http1MaxHeaders,
    maxTargetSize: http.maxTargetSize,
    maxRequestBodySize: http.maxRequestBodySize,
    idleTimeout: http.http1IdleTimeout,
    headerReadTimeout: headerReadTimeout(http),
    streamIdleTimeout: http.streamIdleTimeout,
    minBodyRate: http.minBodyRate,
    maxConnections: http.maxConnections,
    maxConnectionDuration: http.maxConnectionDuration,
    headerCase: http.http1HeaderCase,
    ...(http.maxBufferedBytes !== undefined && { maxBufferedBytes: http.maxBufferedBytes }),
    ...(http.underscores !== undefined && { underscores: http.underscores }),
    ...http2Limits(http),
    ...(http.forwarded !== undefined && { forwarded: http.forwarded }),
    ...(http.requestId !== undefined && { requestId: http.requestId }),
    keepalives: { enabled: tcp.keepalives.enabled, time: tcp.keepalives.time },
    ...(proxyProtocol !== undefined && { proxyProtocol }),
    ...(connect !== undefined && connect.mode !== "deny" && { connect: connect.mode }),
    ...(input.udp !== undefined && { udp: input.udp }),
    ...(input.tls?.handshakeTimeout !== undefined && { handshakeTimeout: input.tls.handshakeTimeout }),
    ...(networkAuthorization !== undefined && { networkAuthorization: networkAuthorization.rules.map(toRule) }),
    ...calling,
    ...(Object.keys(origins).length > 0 && { origins }),
  };
}

function http2Limits(http: NonNullable<FrontendInput["http"]>): Pick<Frontend, "http2"> {
  const http2: Http2Limits = defined({
    windowSize: http.http2WindowSize,
    connectionWindowSize: http.http2ConnectionWindowSize,
    frameSize: http.http2FrameSize,
    maxHeaderSize: http.http2MaxHeaderSize,
    maxConcurrentStreams: http.http2MaxConcurrentStreams,
    keepaliveInterval: http.http2KeepaliveInterval,
    keepaliveTimeout: http.http2KeepaliveTimeout,
  });
  return Object.keys(http2).length === 0 ? {} : { http2 };
}

/** The same for a bind with a `tunnelProtocol` of its own. */
export function tunnelFrontend(frontend: Frontend, tunnelProtocol: Bind["tunnelProtocol"]): Frontend {
  if (tunnelProtocol === "proxy") return { ...frontend, proxyProtocol: frontend.proxyProtocol ?? PROXY_PROTOCOL };
  return tunnelProtocol === "connect" ? { ...frontend, connect: "tunnel" } : frontend;
}

/**
 * What `frontendPolicies`, which is written at `around`, sets, as the dump shows it among the targeted policies (reference 4.4): the
 * values in effect.
 */
export function dumpFrontend(input: FrontendInput, calling: Calling, around: Origin): TargetedPolicy[] {
  const { http, tcp, udp, tls, connect, networkAuthorization, proxyProtocol = input.proxy } = input;
  const fields = {
    http: http && { ...http, headerReadTimeout: headerReadTimeout(http) },
    tcp,
    udp,
    tls,
    connect,
    ipAccess: calling.ipAccess,
    networkAuthorization,
    networkExtAuthz: calling.networkExtAuthz,
    proxyProtocol,
    accessLog: calling.accessLog,
    tracing: calling.tracing,
  };
  return Object.entries(fields).flatMap(([field, value]) =>
    value === undefined
      ? []
      : [
          {
            key: `frontend/${field}`,
            name: null,
            target: ALL,
            origin: below(around, [writtenAs(field, input)]),
            policy: { frontend: { [field]: value } },
          },
        ],
  );
}

function writtenAs(field: string, input: FrontendInput): string {
  return FRONTEND_ALIASES.find(([alias, name]) => name === field && input[alias] !== undefined)?.[0] ?? field;
}

const ALL = { gateway: { gatewayName: "default", gatewayNamespace: "default", listenerName: null } };

function toRule({ allow, deny, require }: NetworkRuleInput): NetworkRule {
  if (deny !== undefined) return { mode: "deny", expression: deny };
  if (require !== undefined) return { mode: "require", expression: require };
  return { mode: "allow", expression: allow ?? "" };
}

/** An idle connection is closed whether or not a head has begun. */
function headerReadTimeout(http: NonNullable<FrontendInput["http"]>): number {
  return Math.min(http.headerReadTimeout, http.http1IdleTimeout);
}

const KIND = "networkExtAuthz";

/** `frontendPolicies.networkExtAuthz` as a runtime type, after its problems were reported. undefined = not configured. */
function translateNetworkExtAuthz(
  { [KIND]: input }: FrontendInput,
  { calledTargets, report, cel }: Pick<CallContext, "calledTargets" | "report" | "cel">,
): NetworkExtAuthz | undefined {
  if (input === undefined) return undefined;
  const path = ["frontendPolicies", KIND];
  const { includeRequestHeaders, includeRequestBody, failureMode, protocol, ...others } = input;
  warnAboutUnusedFields({ includeRequestHeaders, includeRequestBody }, path, report);
  const { host, service, backend, policies, timeout, ...rest } = others;
  const call = { host, service, backend, policies, timeout };
  const config: NetworkExtAuthz = defined({
    ...calledTargets.service(call, "grpc" in protocol ? "grpc" : "http", path, translateCallPolicies),
    ...rest,
    // Rejected clients get no response that could have a status.
    failureMode: failureMode === "allow" ? "allow" : "deny",
    protocol: networkProtocol(protocol, [...path, "protocol"], report),
  });
  try {
    within([KIND], () => prepareNetworkAuthz(config, cel));
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    for (const problem of error.problems) reportProblem(problem, ["frontendPolicies"], report);
  }
  return config;
}

function networkProtocol(
  written: NonNullable<FrontendInput[typeof KIND]>["protocol"],
  path: Path,
  report: Report,
): NetworkExtAuthz["protocol"] {
  if ("grpc" in written) return written;
  const { redirect, includeResponseHeaders, ...http } = written.http;
  warnAboutUnusedFields({ redirect, includeResponseHeaders }, [...path, "http"], report);
  return { http };
}

/** Warns about fields of `extAuthz` that concern a request. */
function warnAboutUnusedFields(fields: Readonly<Record<string, unknown>>, path: Path, report: Report): void {
  for (const [field, value] of Object.entries(fields))
    if (value !== undefined)
      report([...path, field], {
        message: "has no effect here: there is no request yet, and rejected clients get no response; use extAuthz",
        warning: true,
      });
}

/** Default timeout of one export, in milliseconds (OpenTelemetry, "OTLP Exporter Configuration"). */
const TIMEOUT = 10_000;
const MOVED = "has moved to frontendPolicies.accessLog; tracegate migrate -f FILE moves it there";

/**
 * `frontendPolicies.accessLog` as a runtime type, completed by what `config.logging` says in its former place. Problems are
 * reported; undefined = nothing is configured.
 */
function translateAccessLog(
  { accessLog, logging }: FrontendInput,
  former: SettingsInput["logging"],
  { calledTargets, report }: Pick<CallContext, "calledTargets" | "report">,
): AccessLog | undefined {
  for (const field of ["filter", "fields"] as const)
    if (former[field] !== undefined) report(["config", "logging"], { message: MOVED, warning: true }, field);
  const input = accessLog ?? logging ?? {};
  const { filter = former.filter, add = former.fields?.add, remove = former.fields?.remove, otlp } = input;
  if (otlp === undefined && filter === undefined && add === undefined && remove === undefined) return undefined;
  const own: AccessLog = defined({ filter, add, remove });
  if (otlp === undefined) return own;
  const path = ["frontendPolicies", accessLog === undefined ? "logging" : "accessLog", "otlp"];
  const fields: LogFields = defined({ filter: otlp.filter ?? filter, ...(otlp.fields ?? { add, remove }) });
  return { ...own, otlp: { collector: collectorOf(otlp, {}, path, calledTargets), ...fields } };
}

/** `frontendPolicies.tracing` as a runtime type; what is wrong with it is reported at `path`. */
function translateTracing(
  input: TracingInput,
  path: Path,
  { calledTargets }: Pick<CallContext, "calledTargets">,
): Tracing {
  const { attributes, resources, remove, semanticConventions, filter, clientSampling, randomSampling } = input;
  return {
    collector: collectorOf(input, resources, path, calledTargets),
    attributes,
    remove,
    ...(semanticConventions !== undefined && { semanticConventions }),
    ...(filter !== undefined && { filter }),
    ...(clientSampling !== undefined && { clientSampling }),
    ...(randomSampling !== undefined && { randomSampling }),
  };
}

function collectorOf(
  { host, service, backend, policies: own, timeout, protocol, path: exportPath }: TracingInput | AccessLogExportInput,
  resources: Collector["resources"],
  path: Path,
  calledTargets: CallContext["calledTargets"],
): Collector {
  const named = { host, service, backend };
  const { target, policies } = calledTargets.call(named, own, protocol === "grpc", path, translateCallPolicies);
  return {
    target,
    ...(policies !== undefined && { policies }),
    protocol,
    path: exportPath,
    timeout: timeout ?? policies?.http?.requestTimeout ?? TIMEOUT,
    resources,
  };
}
