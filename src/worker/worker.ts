import { parentPort } from "node:worker_threads";
import { LogOutput, LogThrottle } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { Sweeper } from "../base/sweeper.ts";
import { CelEnvironment } from "../cel/index.ts";
import { SocketBudget } from "../net/acceptor.ts";
import { TokenBuckets } from "../policies/local-rate-limit/buckets.ts";
import { BufferBudget } from "../proxy/body/buffer-budget.ts";
import { DataPlane } from "../proxy/data-plane.ts";
import type { Services } from "../proxy/services.ts";
import { TraceLog } from "../proxy/trace-log.ts";
import { Watchers } from "../proxy/watchers.ts";
import { CustomLabels } from "../telemetry/custom-labels.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { readThreadMemory } from "../telemetry/thread-memory.ts";
import { TraceGate } from "../trace/gate.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { Workloads } from "../upstream/discovery.ts";
import { dynamicEndpoints } from "../upstream/dynamic.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import { Endpoints } from "../upstream/endpoints.ts";
import { Pools } from "../upstream/pools.ts";
import { Resolver } from "../upstream/resolver.ts";
import { ChunkBatches, LogBatch, LogWindow } from "./batches.ts";
import type { Answer, Args, CommandName, Notice, Request, WorkerOptions } from "./messages.ts";
import { heapProfile, type RunningCpuProfile, startCpuProfile } from "./profiles.ts";

const NO_DESCRIPTORS = "clients are refused: the limit of open files (ulimit -n) leaves no room for more connections";
const REFUSALS_LOGGED_MS = 60_000;

type Handlers = { readonly [Name in CommandName]: (args: Args<Name>) => Answer<Name> | Promise<Answer<Name>> };

/** The entry of a worker thread: builds the data plane, then runs the main thread's commands. */
function main(port: NonNullable<typeof parentPort>, options: WorkerOptions): void {
  const notify = (notice: Notice): void => port.postMessage(notice);
  const window = new LogWindow(options.logWindow);
  const batch = new LogBatch((lines) => {
    if (window.admit(lines)) port.postMessage({ type: "log", lines } satisfies Notice, [lines.buffer]);
  });
  const output = new LogOutput(parseLogFilter(options.logFilter), options.logFormat, (line) => batch.add(line));
  const chunks = new ChunkBatches((exporter, chunk) => notify({ type: "export", exporter, chunk }));
  const customLabels = Object.keys(options.metricLabels).length;
  const metrics = new Metrics(customLabels, (series) => notify({ type: "series", notice: series }));
  const sweeper = new Sweeper();
  const connectTimes = metrics.upstreamConnect("plaintext");
  const observer = { onConnected: (seconds: number) => connectTimes.observe(seconds) };
  const pools = new Pools(
    options.pool,
    new Resolver(options.lookupFamily, output.logger("upstream::dns")),
    observer,
    sweeper,
  );
  const endpoints = new Endpoints(pools, (eviction) => notify({ type: "evicted", notice: eviction }));
  const watchers = new Watchers(new TraceGate(options.gate, options.index), (id, event) =>
    notify({ type: "trace", id, event }),
  );
  const log = output.logger("proxy");
  const refusals = new LogThrottle(REFUSALS_LOGGED_MS);
  let internal: Endpoint | undefined;
  const services: Services = {
    metrics,
    customLabels: customLabels === 0 ? undefined : makeLabels(options),
    watchers,
    traceLog: new TraceLog(output),
    log,
    accessLog: output.logger("request"),
    exports: chunks,
    sensitive: sensitiveHeaders(options.sensitiveHeaders),
    policies: {
      hidden: sensitiveHeaders(options.sensitiveHeaders),
      log,
      buckets: new TokenBuckets(options.buckets, options.index),
      oidcCookieKey: options.oidcCookieKey,
    },
    env: options.env,
    clientSockets: new SocketBudget(options.clientConnections, () =>
      refusals.tell(() => log.warn(NO_DESCRIPTORS, { connections: options.clientConnections })),
    ),
    workloads: new Workloads(),
    locality: options.locality,
    upstreamCall: metrics.upstreamCall("Primary", "Http"),
    random: Math.random,
    buffers: new BufferBudget(),
    dynamic: dynamicEndpoints(endpoints, options.adminPorts),
    internal: () => {
      internal ??= endpoints.acquire({ path: options.internalSocket }, 1, "internal");
      return internal;
    },
  };
  const plane = new DataPlane(services, endpoints, sweeper);
  const profiles = new Map<number, RunningCpuProfile>();

  const commands: Handlers = {
    prepare: ({ generation, configuration, ports }) =>
      plane.prepare(generation, configuration, ports, options.reusePort),
    commit: () => plane.commit(),
    abort: () => plane.abort(),
    watch: ({ id, slot, filter, options }) => watchers.add(id, slot, filter, options),
    unwatch: ({ id }) => watchers.remove(id),
    logFilter({ filter }) {
      output.filter = parseLogFilter(filter);
    },
    endpoints: () => endpoints.stats(),
    calls: () => endpoints.calls,
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
    evict: ({ notice }) => endpoints.evict(notice),
    drain: ({ step, deadlineMs }) => plane.drain(step, deadlineMs),
    destroy() {
      const connections = plane.destroy();
      // The main thread ends this one after the answer, and lines that still wait for others would be lost.
      batch.flush();
      chunks.flush();
      return connections;
    },
  };
  const run = async <Name extends CommandName>(name: Name, args: Args<Name>): Promise<Answer<Name>> =>
    commands[name](args);

  port.on("message", ({ call, name, args }: Request) => {
    run(name, args).then(
      (value) => notify({ type: "answer", call, value }),
      (error: unknown) => {
        const { message, code } = error as NodeJS.ErrnoException;
        notify({ type: "failure", call, message: message ?? String(error), code });
      },
    );
  });
}

function makeLabels({ metricLabels, customFunctions }: WorkerOptions): CustomLabels {
  return new CustomLabels(metricLabels, CelEnvironment.defining(customFunctions));
}

const port = parentPort;
port?.once("message", (options: WorkerOptions) => main(port, options));
