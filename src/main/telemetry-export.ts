import type { Logger } from "../base/log.ts";
import { Sweeper } from "../base/sweeper.ts";
import { CelEnvironment } from "../cel/index.ts";
import type { Collector, Ir } from "../ir/ir.ts";
import { createBuckets, TokenBuckets } from "../policies/local-rate-limit/buckets.ts";
import { type CompilerServices, IrCompiler } from "../proxy/compile-ir.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { type ExportCounts, ExportQueue } from "../telemetry/otlp/export-queue.ts";
import { type Chunk, encodeExportRequest, exporterKey, type Signal } from "../telemetry/otlp/messages.ts";
import { resourceAttributes } from "../telemetry/otlp/resource.ts";
import type { ExtraMetric } from "../telemetry/prometheus.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { type Callout, NO_UPSTREAM } from "../upstream/callout.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import { Endpoints } from "../upstream/endpoints.ts";
import { otlpSender } from "../upstream/otlp-sender.ts";
import { Pools } from "../upstream/pools.ts";
import { Resolver } from "../upstream/resolver.ts";
import type { WorkerOptions } from "../worker/messages.ts";
import { versionInfo } from "./version.ts";

type Worker = Pick<WorkerOptions, "pool" | "lookupFamily" | "sensitiveHeaders" | "locality" | "env">;

/** Exports of the main thread, which connects as its workers do. */
export function makeExports(worker: Worker, env: ExportSurroundings["env"], log: Logger): TelemetryExport {
  const pools = new Pools(worker.pool, new Resolver(worker.lookupFamily), { onConnected() {} }, new Sweeper());
  const services: CompilerServices = {
    metrics: new Metrics(),
    customLabels: undefined,
    policies: { hidden: sensitiveHeaders(worker.sensitiveHeaders), buckets: new TokenBuckets(createBuckets(1)), log },
    locality: worker.locality,
    // What exports something is not exported itself.
    exports: { add() {} },
    random: Math.random,
  };
  const { version } = versionInfo();
  return new TelemetryExport({ env, shownEnv: worker.env, version, log }, services, new Endpoints(pools));
}

/** What exports need of the process. */
export interface ExportSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `env` of expressions. */
  readonly shownEnv: Readonly<Record<string, string>>;
  readonly version: string;
  readonly log: Logger;
}

/** Sends what the workers hand over to the collectors that the configuration names: spans and records of the access log. */
export class TelemetryExport {
  readonly #surroundings: ExportSurroundings;
  readonly #services: CompilerServices;
  readonly #endpoints: Endpoints;
  /** Those of earlier configurations stay: requests that began with one may end at any time, and idle they cost nothing. */
  readonly #exporters = new Map<string, Exporter>();
  readonly #counts = new Map<Signal, ExportCounts>();
  #held: readonly Endpoint[] = [];

  /** `endpoints` are those of the main thread. */
  constructor(surroundings: ExportSurroundings, services: CompilerServices, endpoints: Endpoints) {
    this.#surroundings = surroundings;
    this.#services = services;
    this.#endpoints = endpoints;
  }

  /** Makes ready for what workers with this configuration hand over. */
  use(ir: Ir): void {
    const frame = { ...ir, binds: [], routeGroups: [] };
    const compiler = new IrCompiler(0, { frame, surroundings: "" }, this.#services, this.#endpoints);
    const cel = CelEnvironment.defining(ir.customFunctions ?? "");
    for (const { frontend } of ir.binds) {
      if (frontend.tracing !== undefined) this.#connect("traces", frontend.tracing.collector, compiler, cel);
      const logs = frontend.accessLog?.otlp;
      if (logs !== undefined) this.#connect("logs", logs.collector, compiler, cel);
    }
    const before = this.#held;
    this.#held = compiler.finish().endpoints;
    this.#endpoints.release(before);
  }

  /** `exporter` as `exporterKey` names it. */
  take(exporter: string, chunk: Chunk): void {
    this.#exporters.get(exporter)?.queue.add(chunk);
  }

  /** None while no configuration has named a collector. */
  metrics(): ExtraMetric[] {
    const counts = [...this.#counts];
    if (counts.length === 0) return [];
    return [
      {
        name: "tracegate_telemetry_exported_total",
        type: "counter",
        help: "Spans and log records that collectors have taken.",
        samples: counts.map(([signal, { exported }]) => ({ labels: { signal }, value: exported })),
      },
      {
        name: "tracegate_telemetry_dropped_total",
        type: "counter",
        help: "Spans and log records that no collector has got.",
        samples: counts.flatMap(([signal, { dropped }]) =>
          Object.entries(dropped).map(([reason, value]) => ({ labels: { signal, reason }, value })),
        ),
      },
    ];
  }

  /** Sends what is there, for at most `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    await Promise.all(Array.from(this.#exporters.values(), ({ queue }) => queue.close(deadlineMs)));
    this.#endpoints.release(this.#held);
    this.#held = [];
  }

  #connect(signal: Signal, collector: Collector, compiler: IrCompiler, cel: CelEnvironment): void {
    const key = exporterKey(signal, collector);
    let exporter = this.#exporters.get(key);
    if (exporter === undefined) {
      exporter = new Exporter(signal, collector, this.#countsOf(signal), this.#surroundings, cel);
      this.#exporters.set(key, exporter);
    }
    // The same collector may be reached in another way, such as by other endpoints of its service.
    exporter.callout = compiler.callout(collector.target, collector.policies);
  }

  #countsOf(signal: Signal): ExportCounts {
    let counts = this.#counts.get(signal);
    if (counts === undefined) {
      counts = { exported: 0, dropped: { queue_full: 0, failed: 0, rejected: 0, shutdown: 0 } };
      this.#counts.set(signal, counts);
    }
    return counts;
  }
}

/** One signal on its way to one collector. */
class Exporter {
  readonly queue: ExportQueue;
  callout: Callout = NO_UPSTREAM;

  constructor(
    signal: Signal,
    collector: Collector,
    counts: ExportCounts,
    { env, shownEnv, version, log }: ExportSurroundings,
    cel: CelEnvironment,
  ) {
    const resource = resourceAttributes(collector.resources, env, shownEnv, version, cel);
    const scope = { name: "tracegate", version };
    const encode = (chunks: readonly Chunk[]): Uint8Array => encodeExportRequest(resource, scope, chunks);
    this.queue = new ExportQueue(
      otlpSender(() => this.callout, signal, collector, encode),
      counts,
      {
        failing: (error) => log.warn("cannot export", { signal, error }),
        working: (dropped) => log.info("exporting again", { signal, dropped }),
      },
    );
  }
}
