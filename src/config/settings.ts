import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { parseDuration } from "../base/durations.ts";
import { messageOf } from "../base/errors.ts";
import { collide, formatListenAddress, type ListenAddress, parseListenAddress } from "../base/listen-address.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import type { LookupRules } from "../net/egress.ts";
import type { AccessFormat, LogFileSettings, LoggedReasons } from "../telemetry/settings.ts";
import type { LeafCaching } from "../tls/tls-settings.ts";
import { network } from "../translation/schema/scalars.ts";
import { type SettingsInput, WORKER_THREADS } from "../translation/schema/settings.ts";
import type { LookupFamily } from "../upstream/discovery/dns.ts";
import { type Locality, ownLocality } from "../upstream/discovery/locality.ts";
import { FREE_PORTS } from "./free-ports.ts";
import type { ConfigSet } from "./parse/config-set.ts";
import { countThreads } from "./worker-threads.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** The `config` section with environment overrides and defaults applied; times in milliseconds. */
export interface Settings {
  readonly enableIpv6: boolean;
  readonly dns: { readonly lookupFamily: LookupFamily } & LookupRules;
  readonly adminAddr: ListenAddress;
  readonly admin: AdminPermissions;
  /** The web view at the admin server. */
  readonly ui: { readonly enabled: boolean };
  readonly statsAddr: ListenAddress;
  readonly readinessAddr: ListenAddress;
  readonly workerThreads: number;
  readonly terminationMaxDeadline: number;
  readonly terminationMinDeadline: number;
  readonly logging: {
    readonly level: string;
    /** Lines that are not of the access log have the format text if it is one of Apache. */
    readonly format: AccessFormat;
    readonly reasons: LoggedReasons;
    /** The file of the access log; undefined: standard output. */
    readonly output: LogFileSettings | undefined;
  };
  readonly metrics: {
    readonly remove: readonly string[];
    /** Label to CEL. */
    readonly fields: { readonly add: Readonly<Record<string, string>> };
  };
  readonly backend: {
    readonly connectTimeout: number;
    readonly poolIdleTimeout: number;
    readonly poolMaxSize: number | undefined;
    readonly unixFolder: string | undefined;
    readonly keepalives: { readonly enabled: boolean; readonly time: number; readonly interval: number };
  };
  readonly overload: {
    readonly maxEventLoopLag: number;
    readonly heapShare: number;
    readonly memoryShare: number;
    /** Bytes; undefined: that of the container or machine. */
    readonly memoryLimit: number | undefined;
  };
  readonly expressions: {
    /** Milliseconds. */
    readonly perRequest: number;
    readonly routeShare: number;
  };
  readonly recorder: {
    readonly off: boolean;
    /** Bytes per worker. */
    readonly recent: number;
    readonly kept: number;
    /** 0: no samples are taken. */
    readonly samples: number;
    readonly clientAddress: boolean;
  };
  /** Not only read at the start. */
  readonly reload: {
    /** `maxRefused`: of sampled requests, from 0 to 1. */
    readonly impact?: { readonly maxRefused: number } | undefined;
  };
  readonly sensitiveHeaders: readonly string[];
  /** Where this process runs. */
  readonly locality: Locality;
  /** Present: everything except these settings, such as routes, comes from a controller. */
  readonly xds?: XdsSettings;
  /** Of listeners with `tls.mode: dynamicCa`; from the environment alone. */
  readonly leafCaching: LeafCaching;
}

/** What clients of the admin API may do besides reading. */
interface AdminPermissions {
  /** See secrets in traces. */
  readonly reveal: boolean;
  /** Shut the gateway down. */
  readonly quit: boolean;
  /** Origins of web pages that may read answers, besides the server's own. */
  readonly browserOrigins: readonly string[];
}

/** The controller of a proxy, and the proxy's identity. */
export interface XdsSettings {
  /** `http(s)://host:port` */
  readonly address: string;
  /** Path of the certificate of the controller's CA, in PEM. */
  readonly rootCa?: string;
  /** Path of the ServiceAccount token. */
  readonly token?: string;
  readonly namespace: string;
  /** Absent: Gateways of a class share the proxy. */
  readonly gateway?: string;
  /** Absent: the proxy is that of one Gateway. */
  readonly gatewayClass?: string;
  readonly pod?: string;
}

/**
 * Applies environment variables (they win) and defaults (docs/configuration.md#environment-variables). Problems go to the
 * document.
 */
export function resolveSettings(
  input: SettingsInput,
  adminAddr: ListenAddress | undefined,
  env: Env,
  document: ConfigSet,
): Settings {
  const override = <T>(name: string, parse: (text: string) => T | undefined, expected: string): T | undefined => {
    const text = env[name];
    if (text === undefined || text === "") return undefined;
    const value = attempt(() => parse(text));
    if (value === undefined)
      document.reportElsewhere({ message: `environment variable ${name} is not valid`, expected });
    return value;
  };
  const address = (name: string): ListenAddress | undefined =>
    override(name, parseListenAddress, "off, unix:/path, localhost:PORT or IP:PORT");
  const time = (name: string): number | undefined => override(name, parseDuration, "a duration such as 5s");
  if (adminAddr !== undefined && input.adminAddr !== undefined)
    document.report(["adminAddr"], { message: "is set twice, here and as config.adminAddr; keep one" });

  const xds = xdsSettings(input, env, document);
  const enableIpv6 = override("IPV6_ENABLED", parseBoolean, "true or false") ?? input.enableIpv6;
  const anyAddress = enableIpv6 ? "::" : "0.0.0.0";
  const family = override("DNS_LOOKUP_FAMILY", parseFamily, "All, Auto, V4Preferred, V4Only or V6Only");
  const threads =
    override("WORKER_THREADS", parseThreads, "a number or a percentage such as 50%") ?? input.workerThreads;
  const usual = (address: ListenAddress): ListenAddress =>
    env[FREE_PORTS] === undefined ? address : { type: "socket", host: "127.0.0.1", port: 0 };
  const settings: Settings = {
    enableIpv6,
    dns: {
      lookupFamily: family ?? input.dns.lookupFamily,
      denyDomains: override("DNS_DENY_DOMAINS", parseList, "names, separated by commas") ?? input.dns.denyDomains,
      denyNetworks:
        override("DNS_DENY_NETWORKS", parseNetworks, "networks, separated by commas") ?? input.dns.denyNetworks,
    },
    admin: input.admin,
    ui: input.ui,
    adminAddr: address("ADMIN_ADDR") ?? input.adminAddr ?? adminAddr ?? usual({ type: "localhost", port: 15000 }),
    statsAddr: address("STATS_ADDR") ?? input.statsAddr ?? usual({ type: "socket", host: anyAddress, port: 15020 }),
    readinessAddr:
      address("READINESS_ADDR") ?? input.readinessAddr ?? usual({ type: "socket", host: anyAddress, port: 15021 }),
    workerThreads: countThreads(threads, env.CPU_LIMIT),
    terminationMaxDeadline:
      time("CONNECTION_TERMINATION_DEADLINE") ??
      input.connectionTerminationDeadline ??
      graceDeadline(env.TERMINATION_GRACE_PERIOD_SECONDS),
    terminationMinDeadline: time("CONNECTION_MIN_TERMINATION_DEADLINE") ?? input.connectionMinTerminationDeadline ?? 0,
    logging: {
      level: logLevel(input.logging.level, document),
      format: input.logging.format,
      reasons: input.logging.reasons,
      output: logFile(input.logging.output, env, document),
    },
    metrics: input.metrics,
    backend: { ...input.backend, poolMaxSize: input.backend.poolMaxSize, unixFolder: input.backend.unixFolder },
    overload: { ...input.overload, memoryLimit: input.overload.memoryLimit },
    expressions: input.expressions,
    recorder: input.recorder,
    reload: { impact: input.reload.impact },
    sensitiveHeaders: input.sensitiveHeaders,
    locality: ownLocality(env, { ...input.locality, cluster: input.clusterId, network: input.network }),
    ...(xds !== undefined && { xds }),
    leafCaching: {
      ttl: override("DYNAMIC_CA_CERT_CACHE_TTL", parseLeafTtl, LEAF_TTL) ?? 300_000,
      capacity: override("DYNAMIC_CA_CERT_CACHE_CAPACITY", parseLeafCapacity, LEAF_CAPACITY) ?? 256,
    },
  };
  reportCollisions(settings, document);
  const { recorder, reload } = settings;
  if (reload.impact !== undefined && (recorder.off || recorder.samples === 0))
    document.report(["config", "reload", "impact"], {
      message: `needs samples of requests, which ${recorder.off ? "config.recorder.off" : "config.recorder.samples: 0"} switches off`,
    });
  return settings;
}

function reportCollisions(settings: Settings, document: ConfigSet): void {
  const servers = Object.entries(ownServers(settings));
  for (const [i, [field, address]] of servers.entries()) {
    const [other] = servers.slice(0, i).find(([, earlier]) => collide(earlier, address)) ?? [];
    if (other !== undefined)
      document.report(field.split("."), {
        message: `${formatListenAddress(address)} is that of ${other} too; only one of them can listen there`,
      });
  }
}

/** Where the gateway's own servers listen, by the field that says it. */
export function ownServers(settings: Settings): Readonly<Record<string, ListenAddress>> {
  return {
    "config.adminAddr": settings.adminAddr,
    "config.statsAddr": settings.statsAddr,
    "config.readinessAddr": settings.readinessAddr,
  };
}

/** Default path of the token, which the deployer mounts into the pods of proxies. */
const DEFAULT_TOKEN = "/var/run/secrets/xds-tokens/xds-token";

function xdsSettings(input: SettingsInput, env: Env, document: ConfigSet): XdsSettings | undefined {
  const either = (name: string, written: string | undefined): string | undefined => env[name] || written || undefined;
  const address = either("XDS_ADDRESS", input.xdsAddress);
  if (address === undefined) return undefined;
  const url = attempt(() => new URL(address));
  if (url === undefined || !/^https?:$/.test(url.protocol))
    document.reportElsewhere({
      message: `the address of the controller, ${address}, is not valid`,
      expected: "http://HOST:PORT or https://HOST:PORT in XDS_ADDRESS or config.xdsAddress",
    });
  const namespace = either("NAMESPACE", input.namespace);
  // A controller sets it where Gateways of a class share the proxies.
  const gatewayClass = env.GATEWAY_CLASS || undefined;
  const gateway = either("GATEWAY", input.gateway);
  const missing = [
    ...(namespace === undefined ? ["NAMESPACE"] : []),
    ...((gatewayClass ?? gateway) === undefined ? ["GATEWAY"] : []),
  ];
  if (missing.length > 0)
    document.reportElsewhere({
      message: `${missing.join(" and ")} must be set when the configuration comes from a controller`,
      expected: "environment variables NAMESPACE and GATEWAY, or config.namespace and config.gateway",
    });
  const rootCa = either("XDS_ROOT_CA", input.xdsRootCa);
  const token = either("XDS_AUTH_TOKEN", input.xdsAuthToken) ?? (existsSync(DEFAULT_TOKEN) ? DEFAULT_TOKEN : undefined);
  return {
    address: url?.origin ?? address,
    ...(rootCa !== undefined && { rootCa }),
    ...(token !== undefined && { token }),
    namespace: namespace ?? "",
    ...(gatewayClass === undefined ? { gateway: gateway ?? "" } : { gatewayClass }),
    ...(env.POD_NAME && { pod: env.POD_NAME }),
  };
}

/** Leaves some seconds of the platform's grace period for everything else (docs/configuration.md#environment-variables). */
function graceDeadline(seconds: string | undefined): number {
  const grace = Number(seconds);
  if (seconds === undefined || !Number.isFinite(grace)) return 5000;
  return Math.max(1, grace > 10 ? grace - 5 : grace - 1) * 1000;
}

function logLevel(level: string | readonly string[], document: ConfigSet): string {
  const text = typeof level === "string" ? level : level.join(",");
  try {
    return parseLogFilter(text).toString();
  } catch (error) {
    document.report(["config", "logging", "level"], {
      message: messageOf(error),
    });
    return "info";
  }
}

function logFile(
  output: SettingsInput["logging"]["output"],
  env: Env,
  document: ConfigSet,
): LogFileSettings | undefined {
  if (output === undefined) return undefined;
  const { file, reopen, maxSize, keep } = output;
  const folder = dirname(document.fileOf(["config", "logging", "output", "file"]));
  const home = env.HOME;
  const expanded = home === undefined ? file : file.replace(/^~(?=\/)/, () => home);
  return { file: resolve(folder, expanded), reopen, maxSize, keep };
}

function parseThreads(text: string): string | undefined {
  return WORKER_THREADS.test(text) ? text : undefined;
}

const LEAF_TTL = "seconds, or a duration such as 5m; from 1s to 12h";
const LEAF_CAPACITY = "a number of certificates from 1 to 65536";

/** Milliseconds. Certificates are valid for a day, so one that was cached for half a day is valid for as long again. */
function parseLeafTtl(text: string): number | undefined {
  const ttl = parseDuration(/^\d+$/.test(text) ? `${text}s` : text);
  return ttl !== undefined && ttl >= 1000 && ttl <= 12 * 3_600_000 ? ttl : undefined;
}

function parseLeafCapacity(text: string): number | undefined {
  const capacity = /^\d+$/.test(text) ? Number(text) : 0;
  return capacity >= 1 && capacity <= 65_536 ? capacity : undefined;
}

function parseBoolean(text: string): boolean | undefined {
  return text === "true" || text === "1" ? true : text === "false" || text === "0" ? false : undefined;
}

function parseList(text: string): readonly string[] {
  return text.split(",").map((each) => each.trim());
}

function parseNetworks(text: string): readonly string[] | undefined {
  const networks = parseList(text);
  return networks.every((each) => network.safeParse(each).success) ? networks : undefined;
}

function parseFamily(text: string): LookupFamily | undefined {
  const known: readonly LookupFamily[] = ["All", "Auto", "V4Preferred", "V4Only", "V6Only"];
  return known.find((family) => family.toLowerCase() === text.replaceAll("_", "").toLowerCase());
}

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

/** The fields of `config` that are read only at start-up, with their effective values. */
const START_ONLY: Readonly<Record<string, (settings: Settings) => unknown>> = {
  enableIpv6: (settings) => settings.enableIpv6,
  "dns.lookupFamily": (settings) => settings.dns.lookupFamily,
  "dns.denyDomains": (settings) => settings.dns.denyDomains,
  "dns.denyNetworks": (settings) => settings.dns.denyNetworks,
  adminAddr: (settings) => settings.adminAddr,
  "admin.reveal": (settings) => settings.admin.reveal,
  "admin.quit": (settings) => settings.admin.quit,
  "admin.browserOrigins": (settings) => settings.admin.browserOrigins,
  "ui.enabled": (settings) => settings.ui.enabled,
  statsAddr: (settings) => settings.statsAddr,
  readinessAddr: (settings) => settings.readinessAddr,
  workerThreads: (settings) => settings.workerThreads,
  connectionTerminationDeadline: (settings) => settings.terminationMaxDeadline,
  connectionMinTerminationDeadline: (settings) => settings.terminationMinDeadline,
  "logging.level": (settings) => settings.logging.level,
  "logging.format": (settings) => settings.logging.format,
  "logging.reasons": (settings) => settings.logging.reasons,
  "logging.output": (settings) => settings.logging.output,
  "metrics.remove": (settings) => settings.metrics.remove,
  "metrics.fields": (settings) => settings.metrics.fields,
  "backend.connectTimeout": (settings) => settings.backend.connectTimeout,
  "backend.poolIdleTimeout": (settings) => settings.backend.poolIdleTimeout,
  "backend.poolMaxSize": (settings) => settings.backend.poolMaxSize,
  "backend.keepalives": (settings) => settings.backend.keepalives,
  "backend.unixFolder": (settings) => settings.backend.unixFolder,
  "overload.maxEventLoopLag": (settings) => settings.overload.maxEventLoopLag,
  "overload.heapShare": (settings) => settings.overload.heapShare,
  "overload.memoryShare": (settings) => settings.overload.memoryShare,
  "overload.memoryLimit": (settings) => settings.overload.memoryLimit,
  "expressions.perRequest": (settings) => settings.expressions.perRequest,
  "expressions.routeShare": (settings) => settings.expressions.routeShare,
  "recorder.off": (settings) => settings.recorder.off,
  "recorder.recent": (settings) => settings.recorder.recent,
  "recorder.kept": (settings) => settings.recorder.kept,
  "recorder.samples": (settings) => settings.recorder.samples,
  "recorder.clientAddress": (settings) => settings.recorder.clientAddress,
  "locality.region": (settings) => settings.locality.region,
  "locality.zone": (settings) => settings.locality.zone,
  "locality.subzone": (settings) => settings.locality.subzone,
  clusterId: (settings) => settings.locality.cluster,
  network: (settings) => settings.locality.network,
  sensitiveHeaders: (settings) => settings.sensitiveHeaders,
  xdsAddress: (settings) => settings.xds?.address,
  xdsRootCa: (settings) => settings.xds?.rootCa,
  xdsAuthToken: (settings) => settings.xds?.token,
  namespace: (settings) => settings.xds?.namespace,
  gateway: (settings) => settings.xds?.gateway,
};

/** The fields, such as `config.adminAddr`, whose values differ: a process that was started with `before` needs a restart. */
export function restartRequired(before: Settings, after: Settings): string[] {
  return Object.entries(START_ONLY).flatMap(([name, read]) =>
    isDeepStrictEqual(read(before), read(after)) ? [] : [`config.${name}`],
  );
}

/** Those of the fields that a configuration sets. */
export function writtenStartOnly(configuration: object): string[] {
  const { config } = configuration as { readonly config?: unknown };
  return Object.keys(START_ONLY).flatMap((name) => (isWritten(config, name.split(".")) ? [`config.${name}`] : []));
}

function isWritten(value: unknown, path: readonly string[]): boolean {
  const [key, ...rest] = path;
  if (key === undefined) return value !== undefined && value !== null;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return false;
  return isWritten((value as Readonly<Record<string, unknown>>)[key], rest);
}
