import { isDeepStrictEqual } from "node:util";
import type { Settings } from "./settings.ts";

/** The fields of `config` that are read at the start only, with what each has become. */
const START_ONLY: Readonly<Record<string, (settings: Settings) => unknown>> = {
  enableIpv6: (settings) => settings.enableIpv6,
  "dns.lookupFamily": (settings) => settings.dns.lookupFamily,
  adminAddr: (settings) => settings.adminAddr,
  statsAddr: (settings) => settings.statsAddr,
  readinessAddr: (settings) => settings.readinessAddr,
  workerThreads: (settings) => settings.workerThreads,
  connectionTerminationDeadline: (settings) => settings.terminationMaxDeadline,
  connectionMinTerminationDeadline: (settings) => settings.terminationMinDeadline,
  "logging.level": (settings) => settings.logging.level,
  "logging.format": (settings) => settings.logging.format,
  "metrics.remove": (settings) => settings.metrics.remove,
  "metrics.fields": (settings) => settings.metrics.fields,
  "backend.connectTimeout": (settings) => settings.backend.connectTimeout,
  "backend.poolIdleTimeout": (settings) => settings.backend.poolIdleTimeout,
  "backend.poolMaxSize": (settings) => settings.backend.poolMaxSize,
  "backend.keepalives": (settings) => settings.backend.keepalives,
  clusterId: (settings) => settings.locality.cluster,
  network: (settings) => settings.locality.network,
  sensitiveHeaders: (settings) => settings.sensitiveHeaders,
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
