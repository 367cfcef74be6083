/**
 * The entry of a worker thread. In: the worker's options as its first message, then commands (see `Commands`). Out: replies,
 * and notices of logs, exports, trace events, counters and evictions. In between it owns a whole data plane: its own listening
 * sockets, connection pools and compiled configuration. Nothing on the request path waits for the main thread.
 */
import { getHeapStatistics } from "node:v8";
import { parentPort, resourceLimits } from "node:worker_threads";
import { asError, messageOf } from "../base/errors.ts";
import { Networks } from "../base/ip-address.ts";
import { LogOutput, LogThrottle } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { OwnSockets } from "../base/own-sockets.ts";
import { Sweeper } from "../base/sweeper.ts";
import { CelEnvironment } from "../cel/index.ts";
import { RejectedParts } from "../ir/rejected-parts.ts";
import { Egress } from "../net/egress.ts";
import { collectGarbage } from "../net/node-internals.ts";
import { SocketBudget, type SocketKind } from "../net/socket-budget.ts";
import { RequestCounts } from "../policies/request-counts/request-counts.ts";
import { SharedSessions } from "../policies/shared-sessions/shared-sessions.ts";
import { TokenBuckets } from "../policies/token-buckets/buckets.ts";
import { BufferBudget } from "../proxy/body/buffer-budget.ts";
import { DataPlane } from "../proxy/data-plane.ts";
import { MemoryPressure } from "../proxy/overload/memory-pressure.ts";
import { Overload, type OverloadSystem, SAMPLE_MS } from "../proxy/overload/overload.ts";
import { ExpressionShares } from "../proxy/services/expression-shares.ts";
import type { Services } from "../proxy/services/services.ts";
import { TraceLog } from "../proxy/services/trace-log.ts";
import { Watchers } from "../proxy/services/watchers.ts";
import { RecorderMemory } from "../recorder/memory.ts";
import { Recorder } from "../recorder/recorder.ts";
import { SampleRing } from "../recorder/sample-ring.ts";
import { Sampler } from "../recorder/sampler.ts";
import { AccessLog } from "../telemetry/access-log.ts";
import { CustomLabels } from "../telemetry/custom-labels.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { readThreadMemory } from "../telemetry/thread-memory.ts";
import { TicketSecrets } from "../tls/ticket-keys.ts";
import { FollowCounters } from "../trace/follow-counters.ts";
import { TraceGate } from "../trace/gate.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { fetchThrough } from "../upstream/callouts/fetch.ts";
import { dynamicEndpoints } from "../upstream/destinations/dynamic.ts";
import { Workloads } from "../upstream/discovery/discovery.ts";
import type { Endpoint } from "../upstream/endpoints/endpoint.ts";
import { Endpoints } from "../upstream/endpoints/endpoints.ts";
import { HealthChecks } from "../upstream/health/health-checks.ts";
import { SharedLoads } from "../upstream/loads/shared-loads.ts";
import { Pools } from "../upstream/pools/pools.ts";
import { LookupLanes } from "../upstream/resolve/lookup-lanes.ts";
import { Resolver, SYSTEM } from "../upstream/resolve/resolver.ts";
import { ChunkBatches, LogBatch } from "./batches.ts";
import { LogRing } from "./log-ring.ts";
import type { Args, CommandName, Notice, RecorderOptions, Reply, Request, WorkerOptions } from "./messages.ts";
import { heapProfile, type RunningCpuProfile, startCpuProfile } from "./profiles.ts";

const NO_DESCRIPTORS: Readonly<Record<SocketKind, string>> = {
  client: "connections are closed: the limit of open files (ulimit -n) leaves no room for more connections",
  upstream: "requests fail: the limit of open files (ulimit -n) leaves no room for more connections to backends",
  udp: "datagrams are dropped: the limit of open files (ulimit -n) leaves no room for more sessions of UDP",
};
const LOADS_FULL =
  "requests in progress at further endpoints are counted in each worker, not over all: there are too many endpoints for the table that workers share";
/** At most one such line per minute and worker: a flood of connections must not become a flood of log lines. */
const SHORTAGE_LOGGED_MS = 60_000;
/** Milliseconds between two notices about one document: clients with unknown keys must not flood the main thread. */
const WANTED_AGAIN_MS = 1000;

/** V8 counts the young generation too, at one and a half times its size; a worker dies when the old one is full. */
const YOUNG_GENERATION = 1.5 * 1024 * 1024 * (resourceLimits.maxYoungGenerationSizeMb ?? 0);

const THREAD: OverloadSystem = {
  now: () => performance.now(),
  heap() {
    const { used_heap_size: used, heap_size_limit: limit, external_memory: external } = getHeapStatistics();
    return { used, limit: limit - YOUNG_GENERATION, external };
  },
  collect: collectGarbage,
  random: Math.random,
};

/** A handler for each command. Replies are sent when its promise settles, so a slow command does not hold up the next. */
type Handlers = { readonly [Name in CommandName]: (args: Args<Name>) => Reply<Name> | Promise<Reply<Name>> };

/**
 * Node has the global `performance` as a getter, which every read of the clock would call: several times for each request.
 */
Object.defineProperty(globalThis, "performance", { value: performance, writable: true });

/** Where lines of the access log go. */
interface AccessLines {
  readonly output: LogOutput;
  readonly batch: LogBatch;
}

/** Undefined: they go where all lines go. */
function accessLines(options: WorkerOptions, notify: (notice: Notice) => void): AccessLines | undefined {
  if (options.accessRing === undefined) return undefined;
  const ring = new LogRing(options.accessRing);
  const batch = new LogBatch((lines) => {
    const part = ring.put(lines);
    if (part !== undefined) notify({ type: "accessLog", part });
  });
  const filter = parseLogFilter(options.logFilter);
  return { output: new LogOutput(filter, options.logFormat, (line) => batch.add(line)), batch };
}

function accessLogOf({ output, batch }: AccessLines, { format, reasons }: WorkerOptions["accessLog"]): AccessLog {
  return new AccessLog(output, batch, reasons, format === "text" || format === "json" ? undefined : format);
}

/** Builds the data plane from `options`, then runs the main thread's commands. */
function main(port: NonNullable<typeof parentPort>, options: WorkerOptions): void {
  // ── what the data plane sends to the main thread ──
  const notify = (notice: Notice): void => port.postMessage(notice);
  const ring = new LogRing(options.logRing);
  const batch = new LogBatch((lines) => {
    const part = ring.put(lines);
    if (part !== undefined) notify({ type: "log", part });
  });
  const output = new LogOutput(parseLogFilter(options.logFilter), options.logFormat, (line) => batch.add(line));
  const access = accessLines(options, notify) ?? { output, batch };
  const chunks = new ChunkBatches((exporter, chunk) => notify({ type: "export", exporter, chunk }));
  // Counters are in shared memory; a notice is sent for new series only, so counting a request costs no message.
  const customLabels = Object.keys(options.metricLabels).length;
  const metrics = new Metrics(customLabels, (series) => notify({ type: "series", notice: series }));

  // ── connections to upstreams: they outlive reloads, keyed by endpoint ──
  // One timer for the coarse deadlines of all connections.
  const sweeper = new Sweeper();
  const connectTimes = metrics.histogram("upstream_connect_duration_seconds", "plaintext");
  const log = output.logger("proxy");
  const observer = {
    onConnected: (seconds: number) => connectTimes.observe(seconds),
    onFault: (error: unknown) =>
      log.error("a connection to an upstream failed inside the gateway", { error: asError(error) }),
  };
  const lanes = new LookupLanes(options.lookupLanes);
  // 0 is the region of the main thread.
  const own = new OwnSockets(options.ownSockets, options.index + 1);
  const egress = new Egress(options.egress, own);
  const resolver = new Resolver(options.lookupFamily, egress, output.logger("upstream::dns"), SYSTEM, lanes);
  const shortages = {
    client: new LogThrottle(SHORTAGE_LOGGED_MS),
    upstream: new LogThrottle(SHORTAGE_LOGGED_MS),
    udp: new LogThrottle(SHORTAGE_LOGGED_MS),
  };
  const budget = new SocketBudget(options.connections, (kind) =>
    shortages[kind].run(() => log.warn(NO_DESCRIPTORS[kind], { connections: budget.used[kind] })),
  );
  const pools = new Pools(options.pool, resolver, observer, sweeper, budget);
  // Connections of probes are not those of requests, nor in their metrics.
  const probes = new Pools({ ...options.pool, maxIdle: 1 }, resolver, { onConnected: () => {} }, sweeper);
  const checks = new HealthChecks(probes, Math.random, output.logger("upstream::health"), (health) => {
    endpoints.setHealth(health);
    notify({ type: "health", notice: health });
  });
  const loads = options.loads && new SharedLoads(options.loads, options.index, () => log.warn(LOADS_FULL));
  const endpoints = new Endpoints(pools, (eviction) => notify({ type: "evicted", notice: eviction }), checks, loads, {
    onFound: (names) => notify({ type: "names", notice: names }),
  });

  // ── the services that all requests of this worker share ──
  // While no watch is armed, tracing costs a request one load from shared memory.
  const followed = new FollowCounters(options.followCounters);
  const watchers = new Watchers(new TraceGate(options.gate, options.index), (id, event) =>
    notify({ type: "trace", id, event }),
  );
  /** One endpoint for all `internal` backends; most configurations have none. */
  let internal: Endpoint | undefined;
  const overload = new Overload(
    options.overload,
    new MemoryPressure(options.pressure),
    options.index,
    metrics,
    log,
    THREAD,
  );
  setInterval(() => overload.sample(), SAMPLE_MS).unref();
  /** When each document was last requested; the URLs come from configurations, so there are few. */
  const documentsWanted = new Map<string, number>();
  const services: Services = {
    metrics,
    customLabels: customLabels === 0 ? undefined : makeLabels(options),
    watchers,
    traceLog: new TraceLog(output),
    log,
    accessLog: accessLogOf(access, options.accessLog),
    recorder: options.recorder && recorderOf(options.recorder, options.index),
    exports: chunks,
    sensitive: sensitiveHeaders(options.sensitiveHeaders),
    policies: {
      hidden: sensitiveHeaders(options.sensitiveHeaders),
      log,
      buckets: new TokenBuckets(options.buckets, options.index, metrics),
      requestCounts: new RequestCounts(options.requestCounts, options.index, metrics),
      wantDocument: (url) => {
        const now = performance.now();
        if (now - (documentsWanted.get(url) ?? Number.NEGATIVE_INFINITY) < WANTED_AGAIN_MS) return;
        documentsWanted.set(url, now);
        notify({ type: "documentWanted", url });
      },
      fetch: fetchThrough(resolver),
      oidcCookieKey: options.oidcCookieKey,
      oidcSessions: new SharedSessions(options.oidcSessions),
      oidcCounters: metrics,
      sessionKey: options.sessionKey,
    },
    env: options.env,
    overload,
    expressions: new ExpressionShares(options.expressions, metrics, {
      now: () => performance.now(),
      loopTime: () => performance.eventLoopUtilization(),
    }),
    sockets: budget,
    workloads: new Workloads(),
    locality: options.locality,
    upstreamCall: metrics.histogram("upstream_call_duration_seconds", "Primary", "Http"),
    tickets: new TicketSecrets(options.tickets),
    random: Math.random,
    // Bounds the memory of buffered bodies over all requests of this worker.
    buffers: new BufferBudget(),
    dynamic: dynamicEndpoints(endpoints, new Networks(egress.lookupRules.denyNetworks)),
    resolver,
    own,
    egress,
    internal: () => {
      if (!egress.allowsInternal) return undefined;
      internal ??= endpoints.acquire({ path: options.egress.internalSocket, version: "HTTP/1.1" }, 1, "internal");
      return internal;
    },
  };
  const plane = new DataPlane(services, endpoints);
  sweeper.add(plane);
  /** CPU profiles in progress by their id: several administrators may record at the same time. */
  const profiles = new Map<number, RunningCpuProfile>();

  const commands: Handlers = {
    prepare: ({ generation, configuration, ports, inherited }) =>
      plane.prepare(generation, configuration, ports, {
        reusePort: options.reusePort,
        unixSockets: options.index === 0,
        inherited,
      }),
    commit: () => plane.commit(),
    abort: () => plane.abort(),
    watch: ({ id, slot, filter, options }) => watchers.add(id, slot, filter, options),
    follow: ({ id, slot, filter, options }) =>
      watchers.follow({ id, slot }, filter, options, followed.begin(slot, id), (batch) =>
        notify({ type: "followed", id, slot, batch }),
      ),
    unwatch: ({ id }) => watchers.remove(id),
    logFilter({ filter }) {
      output.filter = parseLogFilter(filter);
      access.output.filter = output.filter;
    },
    endpoints: ({ keys }) => endpoints.stats(keys),
    probe: ({ keys }) => checks.probe(endpoints.withKeys(keys)),
    calls: () => new Map(Array.from(endpoints.calls, ([key, { total }]) => [key, total])),
    tasks: () => plane.tasks(),
    memory: () => readThreadMemory(),
    async cpuStart({ id, frequency }) {
      profiles.set(id, await startCpuProfile(frequency));
    },
    async cpuStop({ id }) {
      const profile = profiles.get(id);
      profiles.delete(id);
      return profile?.stop();
    },
    heap: () => heapProfile(),
    // Does not notify again, or two workers would send each other the same eviction forever.
    evict: ({ notice }) => endpoints.evict(notice),
    checkHealth: () => checks.start(),
    // Does not notify either.
    health: ({ notice }) => endpoints.setHealth(notice),
    names: ({ notice }) => endpoints.learn(notice),
    sockets: () => plane.sockets,
    handOver: () => plane.handOver(),
    drain: ({ step, deadlineMs }) => plane.drain(step, deadlineMs),
    destroy() {
      const connections = plane.destroy();
      // The main thread ends this one after the reply; batches that wait for their timer would be lost.
      batch.flush();
      access.batch.flush();
      chunks.flush();
      watchers.flush();
      return connections;
    },
  };
  const run = async <Name extends CommandName>(name: Name, args: Args<Name>): Promise<Reply<Name>> =>
    commands[name](args);

  // Errors become replies: an exception here would end the thread with all its connections.
  port.on("message", ({ call, name, args }: Request) => {
    run(name, args).then(
      (value) => notify({ type: "reply", call, value }),
      (error: unknown) => {
        const parts = error instanceof RejectedParts ? { parts: error.parts } : {};
        notify({ type: "failure", call, message: messageOf(error), ...parts });
      },
    );
  });
}

/** Labels that `config.metrics.fields.add` defines by CEL. They are fixed at startup, as all workers' series must agree. */
function makeLabels({ metricLabels, customFunctions }: WorkerOptions): CustomLabels {
  return new CustomLabels(metricLabels, CelEnvironment.defining(customFunctions));
}

const port = parentPort;
port?.once("message", (options: WorkerOptions) => main(port, options));

function recorderOf({ memory, samples, sampleKey, clientAddress }: RecorderOptions, worker: number): Recorder {
  const sampler = samples && new Sampler(new SampleRing(samples), sampleKey);
  return new Recorder(new RecorderMemory(memory), worker, clientAddress, sampler);
}
