import { packageVersion } from "../base/build-info.ts";
import type { Logger } from "../base/log.ts";
import { Sweeper } from "../base/sweeper.ts";
import { CelEnvironment } from "../cel/index.ts";
import type { Collector } from "../ir/ir.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import type { Egress } from "../net/egress.ts";
import { RequestCounts } from "../policies/request-counts/request-counts.ts";
import { TokenBuckets } from "../policies/token-buckets/buckets.ts";
import { AddressBook } from "../proxy/compile/address-book.ts";
import { inOneGo } from "../proxy/compile/compile-ir.ts";
import { Outbound, type OutboundServices } from "../proxy/compile/outbound.ts";
import { type ExportCounts, ExportQueue } from "../telemetry/otlp/export-queue.ts";
import { type Chunk, encodeExportRequest, exporterKey, type Signal } from "../telemetry/otlp/messages.ts";
import { resourceAttributes } from "../telemetry/otlp/resource.ts";
import { counter, type ExtraMetric } from "../telemetry/prometheus.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { type Callout, NO_UPSTREAM } from "../upstream/callouts/callout.ts";
import { fetchThrough } from "../upstream/callouts/fetch.ts";
import { otlpSender } from "../upstream/callouts/otlp-sender.ts";
import { Endpoints, type Held } from "../upstream/endpoints/endpoints.ts";
import { Pools } from "../upstream/pools/pools.ts";
import { LookupLanes } from "../upstream/resolve/lookup-lanes.ts";
import { Resolver } from "../upstream/resolve/resolver.ts";
import type { WorkerOptions } from "../worker/messages.ts";

type Worker = Pick<WorkerOptions, "pool" | "lookupFamily" | "lookupLanes" | "sensitiveHeaders" | "locality" | "env">;

/** Exports run in the main thread, with the connection settings of the workers. */
export function makeExports(worker: Worker, egress: Egress, env: ExportContext["env"], log: Logger): TelemetryExport {
  const resolver = new Resolver(worker.lookupFamily, egress, undefined, undefined, new LookupLanes(worker.lookupLanes));
  const pools = new Pools(worker.pool, resolver, { onConnected() {} }, new Sweeper());
  const services: OutboundServices = {
    policies: {
      hidden: sensitiveHeaders(worker.sensitiveHeaders),
      buckets: new TokenBuckets(),
      requestCounts: new RequestCounts(),
      fetch: fetchThrough(resolver),
      log,
    },
    locality: worker.locality,
    random: Math.random,
  };
  const version = packageVersion();
  return new TelemetryExport({ env, snapshotEnv: worker.env, version, log }, services, new Endpoints(pools));
}

/** The part of the process that exports use. */
interface ExportContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `env` of expressions. */
  readonly snapshotEnv: Readonly<Record<string, string>>;
  readonly version: string;
  readonly log: Logger;
}

/** Sends spans and access log records of the workers to the collectors of the configuration. */
export class TelemetryExport {
  readonly #context: ExportContext;
  readonly #services: OutboundServices;
  readonly #endpoints: Endpoints;
  /** Exporters of earlier configurations stay: requests that began with one may end at any time, and idle ones cost nothing. */
  readonly #exporters = new Map<string, Exporter>();
  readonly #counts = new Map<Signal, ExportCounts>();
  #held: readonly Held[] = [];

  /** `endpoints` are those of the main thread. */
  constructor(context: ExportContext, services: OutboundServices, endpoints: Endpoints) {
    this.#context = context;
    this.#services = services;
    this.#endpoints = endpoints;
  }

  /** Connects the collectors of this configuration. Called before workers commit it. */
  use({ frame: ir, addresses }: Pick<PackedIr, "frame" | "addresses">): void {
    const used = ir.binds.some(({ frontend }) => frontend.tracing ?? frontend.accessLog?.otlp);
    if (!used && this.#held.length === 0) return;
    const outbound = new Outbound(ir, inOneGo(AddressBook.reading(addresses)), this.#services, this.#endpoints);
    const cel = CelEnvironment.defining(ir.customFunctions ?? "");
    for (const { frontend } of ir.binds) {
      if (frontend.tracing !== undefined) this.#connect("traces", frontend.tracing.collector, outbound, cel);
      const logs = frontend.accessLog?.otlp;
      if (logs !== undefined) this.#connect("logs", logs.collector, outbound, cel);
    }
    const before = this.#held;
    outbound.finish();
    this.#held = outbound.destinations.held;
    this.#endpoints.release(before);
  }

  /** Queues entries for the exporter with this `exporterKey`. */
  add(exporter: string, chunk: Chunk): void {
    this.#exporters.get(exporter)?.queue.add(chunk);
  }

  /** Empty until a configuration names a collector. */
  metrics(): ExtraMetric[] {
    const counts = [...this.#counts];
    if (counts.length === 0) return [];
    return [
      counter(
        "tracegate_telemetry_exported_total",
        "Spans and log records that collectors accepted.",
        counts.map(([signal, { exported }]) => ({ labels: { signal }, value: exported })),
      ),
      counter(
        "tracegate_telemetry_dropped_total",
        "Spans and log records that were not delivered.",
        counts.flatMap(([signal, { dropped }]) =>
          Object.entries(dropped).map(([reason, value]) => ({ labels: { signal, reason }, value })),
        ),
      ),
    ];
  }

  /** Sends what is queued, for at most `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    await Promise.all(Array.from(this.#exporters.values(), ({ queue }) => queue.close(deadlineMs)));
    this.#endpoints.release(this.#held);
    this.#held = [];
  }

  #connect(signal: Signal, collector: Collector, outbound: Outbound, cel: CelEnvironment): void {
    const key = exporterKey(signal, collector);
    let exporter = this.#exporters.get(key);
    if (exporter === undefined) {
      exporter = new Exporter(signal, collector, this.#countsOf(signal), this.#context, cel);
      this.#exporters.set(key, exporter);
    }
    // A reload may change the endpoints or policies of the same collector.
    exporter.callout = outbound.callout(collector.target, collector.policies);
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

/** The queue of one signal to one collector. */
class Exporter {
  readonly queue: ExportQueue;
  callout: Callout = NO_UPSTREAM;

  constructor(
    signal: Signal,
    collector: Collector,
    counts: ExportCounts,
    { env, snapshotEnv, version, log }: ExportContext,
    cel: CelEnvironment,
  ) {
    const resource = resourceAttributes(collector.resources, env, snapshotEnv, version, cel);
    const scope = { name: "tracegate", version };
    const encode = (chunks: readonly Chunk[]): Uint8Array => encodeExportRequest(resource, scope, chunks);
    this.queue = new ExportQueue(
      otlpSender(() => this.callout, signal, collector, encode),
      counts,
      {
        failing: (error) => log.warn("cannot export", { signal, error }),
        lost: (entries) =>
          log.warn("the shutdown ended before all telemetry was exported", { signal, dropped: entries }),
        working: (dropped) => log.info("exporting again", { signal, dropped }),
      },
    );
  }
}
