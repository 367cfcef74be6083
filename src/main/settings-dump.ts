import { formatDuration } from "../base/durations.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Settings } from "../config/settings.ts";
import type { Ir } from "../ir/ir.ts";
import { withDurations } from "../policies/shared/shown-durations.ts";

/**
 * The startup settings as the dump shows them (reference 4.4), with the addresses that the servers really have and the
 * functions in force.
 */
export function dumpSettings(
  settings: Settings,
  { customFunctions = "" }: Ir,
  addresses: Readonly<Record<string, readonly string[]>>,
): Readonly<Record<string, unknown>> {
  const { keepalives, ...backend } = settings.backend;
  return {
    ipv6Enabled: settings.enableIpv6,
    terminationMaxDeadline: formatDuration(settings.terminationMaxDeadline),
    terminationMinDeadline: formatDuration(settings.terminationMinDeadline),
    numWorkerThreads: settings.workerThreads,
    adminAddr: dumpAddress(settings.adminAddr),
    statsAddr: dumpAddress(settings.statsAddr),
    readinessAddr: dumpAddress(settings.readinessAddr),
    listening: addresses,
    metrics: settings.metrics,
    logging: settings.logging,
    sensitiveHeaders: settings.sensitiveHeaders,
    dns: settings.dns,
    locality: settings.locality,
    backend: {
      keepalives: withDurations(keepalives, "time", "interval"),
      ...withDurations(backend, "connectTimeout", "poolIdleTimeout"),
    },
    dynamicCaCertCache: withDurations(settings.leafCaching, "ttl"),
    customFunctions,
  };
}

/** As the reference writes it: `{"Localhost": [true, 15000]}`, `{"SocketAddr": "[::]:15020"}`, `"Off"`. */
function dumpAddress(address: ListenAddress): unknown {
  switch (address.type) {
    case "off":
      return "Off";
    case "unix":
      return { UnixSocket: address.path };
    case "localhost":
      return { Localhost: [true, address.port] };
    default:
      return {
        SocketAddr: address.host.includes(":")
          ? `[${address.host}]:${address.port}`
          : `${address.host}:${address.port}`,
      };
  }
}
