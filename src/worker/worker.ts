import { parentPort } from "node:worker_threads";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { LogThrottle } from "../base/log-throttle.ts";
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
import { ChunkBatches } from "./chunk-batches.ts";
import { type RunningCpuProfile, startCpuProfile } from "./diagnostics/cpu-profile.ts";
import { heapProfile } from "./diagnostics/heap-profile.ts";
import { LogBatch } from "./log-batch.ts";
import { LogWindow } from "./log-window.ts";
import type { Command, Notice, Request, WorkerOptions } from "./messages.ts";

const NO_DESCRIPTORS = "clients are refused: the limit of open files (ulimit -n) leaves no room for more connections";
const REFUSALS_LOGGED_MS = 60_000;

/** The entry of a worker thread: builds the data plane and obeys the main thread's commands. */
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

  const run = async (command: Command): Promise<unknown> => {
    switch (command.type) {
      case "prepare":
        return plane.prepare(command.generation, command.configuration, command.ports, options.reusePort);
      case "commit":
        return plane.commit();
      case "abort":
        return plane.abort();
      case "watch":
        return watchers.add(command.id, command.slot, command.filter, command.options);
      case "unwatch":
        return watchers.remove(command.id);
      case "logFilter":
        output.filter = parseLogFilter(command.filter);
        return undefined;
      case "endpoints":
        return endpoints.stats();
      case "calls":
        return endpoints.calls;
      case "tasks":
        return plane.tasks();
      case "memory":
        return readThreadMemory();
      case "cpuStart":
        profiles.set(command.id, await startCpuProfile(command.frequency));
        return undefined;
      case "cpuStop": {
        const profile = profiles.get(command.id);
        profiles.delete(command.id);
        return profile?.stop();
      }
      case "heap":
        return heapProfile();
      case "evict":
        return endpoints.evict(command.notice);
      case "drain":
        return plane.drain(command.step, command.deadlineMs);
      case "destroy": {
        const cut = plane.destroy();
        // The thread ends after the answer: lines that still wait for others would be lost.
        batch.flush();
        chunks.flush();
        return cut;
      }
    }
  };

  port.on("message", ({ call, command }: Request) => {
    run(command).then(
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
