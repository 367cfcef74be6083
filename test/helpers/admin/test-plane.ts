import { memoryReport } from "../../../src/admin/memory.ts";
import type { Overview, RoutesAnswer } from "../../../src/admin/plane/answers.ts";
import type { BackendsAnswer, BackendView, ProbeAnswer } from "../../../src/admin/plane/backends.ts";
import type { ConfigDifference } from "../../../src/admin/plane/config-difference.ts";
import type { ConfigPartsAnswer } from "../../../src/admin/plane/config-parts.ts";
import type { ConfigStatus } from "../../../src/admin/plane/config-status.ts";
import {
  AdminBadRequest,
  type AdminPlane,
  AdminUnavailable,
  type TraceHandle,
  type TraceOptions,
  type TraceReader,
} from "../../../src/admin/plane/plane.ts";
import { LogOutput } from "../../../src/base/log.ts";
import { type LogFilter, parseLogFilter } from "../../../src/base/log-filter.ts";
import type { Catalog } from "../../../src/cel/index.ts";
import type { RecordAnswer } from "../../../src/recorder/records.ts";
import type { Evaluation } from "../../../src/rehearsal/evaluate.ts";
import type { Explanation } from "../../../src/rehearsal/explanation.ts";
import { readThreadMemory } from "../../../src/telemetry/thread-memory.ts";

/** A gateway without a data plane for tests of the servers; tests send the trace events themselves. */
export class TestPlane implements AdminPlane {
  readonly version = "9.9.9";
  permits = {
    reveal: true,
    quit: true,
    ui: true,
    browserOrigins: ["http://localhost:3000", "https://console.example"],
  };
  /** Lines the servers logged. */
  readonly lines: string[] = [];
  readonly output = new LogOutput(parseLogFilter("debug"), "text", (line) => this.lines.push(line));
  readonly log = this.output.logger("admin");
  readonly traces: TestTrace[] = [];
  waiting: string[] = [];
  profiles: { readonly seconds: number; readonly hz: number; readonly signal: AbortSignal }[] = [];
  /** While set, a CPU profile lasts until its signal aborts. */
  holdProfiles = false;
  shutdowns = 0;
  failure: Error | undefined;
  dump: unknown = { binds: [], version: this.version };
  answered(): void {}
  #filter: LogFilter = parseLogFilter("info");
  #arrived: (() => void)[] = [];

  async configDump(): Promise<unknown> {
    if (this.failure !== undefined) throw this.failure;
    return this.dump;
  }

  configStatus(): ConfigStatus {
    const at = "2026-02-03T04:05:06.000Z";
    const lastError = {
      at,
      message: "1 problem",
      diagnostics: [{ path: "binds[0].port", message: "expected a number" }],
    };
    const outcome = { lastError, synchronized: false, diskDiffers: true, nextRetryAt: null, restartRequired: [] };
    return { generation: 3, appliedAt: at, loadedAt: at, hash: "ab12", source: "gateway.yaml", ...outcome };
  }

  async backends(): Promise<BackendsAnswer> {
    return { generation: 3, backends: { total: 0, shown: [] } };
  }

  async backend(): Promise<BackendView | undefined> {
    return undefined;
  }

  probe(key: string): Promise<ProbeAnswer> {
    return Promise.resolve({ key, endpoints: 0, probes: [] });
  }

  certificates(): { certificates: [] } {
    return { certificates: [] };
  }

  overview(): Overview {
    return {
      version: this.version,
      status: this.configStatus(),
      pending: this.waiting,
      draining: this.draining(),
      workers: [],
      listeners: [],
      traffic: { step: 10, points: [] },
      failures: null,
    };
  }

  async configDifference(): Promise<ConfigDifference> {
    return { hunks: [] };
  }

  async configParts(): Promise<ConfigPartsAnswer> {
    return { generation: 3, total: 0, found: 0, page: 1, parts: [] };
  }

  async routes(): Promise<RoutesAnswer> {
    return { generation: 3, since: "2026-11-28T12:00:00.000Z", total: 0, found: 0, routes: [] };
  }

  async route(): Promise<undefined> {}

  async openTrace(options: TraceOptions, reader: TraceReader): Promise<TraceHandle> {
    if (options.expression === "bad(") throw new AdminBadRequest("invalid expression: unexpected end at 1:5");
    const trace = new TestTrace(options, reader);
    this.traces.push(trace);
    this.#notify();
    return trace;
  }

  async openFollow(): Promise<TraceHandle> {
    return { close: () => undefined };
  }

  resumeFollow(): TraceHandle {
    return { close: () => undefined };
  }

  requests(): RecordAnswer {
    return { records: [], found: 0, requests: 0, until: new Date().toISOString() };
  }

  samples(): string {
    return "";
  }

  async evaluate(): Promise<Evaluation> {
    return { parts: [] };
  }

  async expressionNames(): Promise<Catalog> {
    return { variables: [], functions: [] };
  }

  async impact(): Promise<never> {
    throw new AdminUnavailable("busy");
  }

  requestsOf(): RecordAnswer {
    return { records: [], found: 0, requests: 0, until: new Date().toISOString() };
  }

  async explain(): Promise<Explanation> {
    return { generation: 3, outcomes: [] };
  }

  logFilter(): string {
    return this.#filter.toString();
  }

  setLogFilter(directives: string, reset: boolean): string {
    try {
      this.#filter = (reset ? parseLogFilter("info") : this.#filter).with(directives);
    } catch {
      throw new AdminBadRequest(`Invalid level provided: ${directives}`);
    }
    return this.logFilter();
  }

  memory(): Promise<unknown> {
    return memoryReport([{ thread: "main", ...readThreadMemory() }]);
  }

  async cpuProfile(seconds: number, hz: number, signal: AbortSignal): Promise<Uint8Array> {
    this.profiles.push({ seconds, hz, signal });
    this.#notify();
    if (this.holdProfiles) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    signal.throwIfAborted();
    return Buffer.from("cpu");
  }

  async heapProfile(): Promise<Uint8Array> {
    return Buffer.from("heap");
  }

  async tasks(): Promise<unknown> {
    return { admin: [], workload: [] };
  }

  async metricsText(): Promise<string> {
    if (this.failure !== undefined) throw this.failure;
    return "# TYPE tracegate_requests_total counter\n";
  }

  pending(): readonly string[] {
    return this.waiting;
  }

  draining(): boolean {
    return this.shutdowns > 0;
  }

  shutdown(): void {
    this.shutdowns++;
    this.#notify();
  }

  /** Resolves when `condition` is true; checked after each call of the plane. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#arrived.push(resolve));
  }

  /** The trace that the next watcher opens. */
  async nextTrace(): Promise<TestTrace> {
    const seen = this.traces.length;
    await this.until(() => this.traces.length > seen);
    const [trace] = this.traces.slice(seen);
    if (trace === undefined) throw new Error("no trace was opened");
    return trace;
  }

  #notify(): void {
    for (const resolve of this.#arrived.splice(0)) resolve();
  }
}

/** One open trace, whose events the test sends. */
class TestTrace implements TraceHandle {
  readonly options: TraceOptions;
  readonly reader: TraceReader;
  readonly closed: Promise<void>;
  close: () => void = () => undefined;

  constructor(options: TraceOptions, reader: TraceReader) {
    this.options = options;
    this.reader = reader;
    this.closed = new Promise((resolve) => {
      this.close = resolve;
    });
  }
}
