/** What the workers get from the configuration's settings, the environment and the limits of the process. */
import { totalmem } from "node:os";
import { openFilesLimit } from "../base/open-files.ts";
import { OwnSockets } from "../base/own-sockets.ts";
import type { Settings } from "../config/settings.ts";
import { COOKIE_SECRET, parseCookieKey } from "../policies/oidc/cookie-key.ts";
import { sessionKey } from "../policies/session-persistence/session-key.ts";
import type { RehearsalSettings } from "../rehearsal/rehearsal.ts";
import { LookupLanes } from "../upstream/resolve/lookup-lanes.ts";
import { containerBytes, residentBytes } from "../worker/memory-in-use.ts";
import type { MemoryLimit } from "../worker/memory-watch.ts";
import type { SupervisorSettings } from "../worker/supervisor.ts";
import type { Loaded } from "./config-follower.ts";
import type { GatewayLog } from "./gateway-log.ts";

/** The settings of the supervisor and of its workers. They are read at startup; changes need a restart. */
export function supervisorSettings(
  { config: settings, configuration }: Loaded,
  { output, accessFormat = output.format, file }: GatewayLog,
  env: Readonly<Record<string, string | undefined>>,
  internalSocket: string,
): SupervisorSettings {
  const { backend, overload, expressions } = settings;
  return {
    workers: settings.workerThreads,
    // The main thread listens too.
    recorder: settings.recorder.off ? undefined : settings.recorder,
    own: new OwnSockets(OwnSockets.memoryFor(settings.workerThreads + 1)),
    worker: {
      pool: {
        connectTimeout: backend.connectTimeout,
        idleTimeout: backend.poolIdleTimeout,
        maxIdle: backend.poolMaxSize,
        keepAliveDelay: backend.keepalives.enabled ? backend.keepalives.time : 0,
      },
      overload: { maxLag: overload.maxEventLoopLag, heapShare: overload.heapShare },
      expressions: { perRequest: expressions.perRequest * 1000, routeShare: expressions.routeShare },
      lookupFamily: settings.dns.lookupFamily,
      lookupLanes: new LookupLanes().memory,
      connections: connectionsPerWorker(openFilesLimit(), settings.workerThreads),
      sensitiveHeaders: settings.sensitiveHeaders,
      ...keysOf(env),
      env: snapshotEnv(env),
      locality: settings.locality,
      logFilter: output.filter.toString(),
      logFormat: output.format,
      accessLog: { format: accessFormat, reasons: settings.logging.reasons, apart: file !== undefined },
      egress: {
        lookupRules: settings.dns,
        provenance: settings.xds === undefined ? "operator" : "stream",
        unixFolder: settings.backend.unixFolder,
        internalSocket,
      },
      metricLabels: settings.metrics.fields.add,
      customFunctions: configuration.frame.customFunctions ?? "",
      reusePort: process.platform === "linux",
    },
  };
}

/** The settings of rehearsals, without what only a running gateway has. */
export function rehearsalSettings(
  { sensitiveHeaders, expressions, locality }: Settings,
  env: Readonly<Record<string, string | undefined>>,
): RehearsalSettings {
  const perRequest = expressions.perRequest * 1000;
  return { sensitiveHeaders, perRequest, ...keysOf(env), env: snapshotEnv(env), locality };
}

/** The keys that seal the cookies of `oidc` and the sessions of `sessionPersistence`. */
function keysOf(
  env: Readonly<Record<string, string | undefined>>,
): Pick<SupervisorSettings["worker"], "oidcCookieKey" | "sessionKey"> {
  const oidcCookieKey = parseCookieKey(env[COOKIE_SECRET] ?? "");
  return { oidcCookieKey, sessionKey: sessionKey(oidcCookieKey) };
}

/** `env` of trace snapshots: in Kubernetes these variables name the pod; elsewhere it is empty. */
function snapshotEnv(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const { POD_NAME, NAMESPACE, GATEWAY } = env;
  return {
    ...(POD_NAME !== undefined && { podName: POD_NAME }),
    ...(NAMESPACE !== undefined && { namespace: NAMESPACE }),
    ...(GATEWAY !== undefined && { gateway: GATEWAY }),
  };
}

/** File descriptors for files that are always open, and for the gateway's own servers, with 128 connections each. */
const RESERVED = 512;

/**
 * How many connections a worker may have, of clients and to backends and callouts together: what the file descriptors that are not
 * reserved allow. Without a limit clients, or the requests of a few of them over HTTP/2, would use up all descriptors, and nothing of
 * the gateway could open a connection or a file. Undefined if the system does not report its limit.
 */
function connectionsPerWorker(limit: number | undefined, workers: number): number | undefined {
  if (limit === undefined) return undefined;
  // With a small limit, a quarter is reserved.
  const left = limit - Math.min(RESERVED, limit / 4);
  return Math.max(1, Math.floor(left / workers));
}

/** Minimum number of connections of a worker, from clients and to backends: a browser opens six, a pool several. */
const FEW = 256;

/**
 * The warning at start-up if `limit` open files are too few for the workers, each of which listens on all `ports`; undefined if they are
 * enough.
 */
export function openFilesWarning(limit: number | undefined, workers: number, ports: number): string | undefined {
  const needed = RESERVED + workers * (ports + FEW);
  if (limit === undefined || limit >= needed) return undefined;
  const left = connectionsPerWorker(limit, workers);
  return (
    `this process may have ${limit} open files, so each of ${workers} workers has room for ${left} connections, those to backends ` +
    `included, and rejects others; allow at least ${needed}, better 65536: LimitNOFILE= of a systemd unit, ` +
    "--ulimit nofile= of docker run, ulimit -Hn of a shell; or set fewer config.workerThreads"
  );
}

/** The limit that the memory of the process is compared with; undefined if the memory watch is off. */
export function memoryLimit({ overload }: Settings): MemoryLimit | undefined {
  const { memoryShare: share, memoryLimit } = overload;
  if (share === 0) return undefined;
  if (memoryLimit !== undefined) return { limit: memoryLimit, share, used: residentBytes, resident: residentBytes };
  // Without a limit of the container, Node.js reports 0 or more than the machine has.
  const limit = process.constrainedMemory();
  if (limit > 0 && limit < totalmem()) return { limit, share, used: containerBytes(), resident: residentBytes };
  return { limit: totalmem(), share, used: residentBytes, resident: residentBytes };
}
