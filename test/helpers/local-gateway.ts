import type { OwnSockets } from "../../src/base/own-sockets.ts";
import type { PackedIr } from "../../src/ir/packed-ir.ts";
import type { Overload } from "../../src/proxy/overload/overload.ts";
import { Records, type RequestRecord } from "../../src/recorder/records.ts";
import { renderMetrics } from "../../src/telemetry/prometheus.ts";
import type { TraceMessage } from "../../src/trace/events.ts";
import type { TraceOptions } from "../../src/trace/tracer.ts";
import type { EndpointStats } from "../../src/upstream/endpoints/endpoints.ts";
import { type PlaneOptions, TestPlane } from "./data-plane.ts";
import type { LogLine } from "./gateway.ts";
import { irOf } from "./supervisor.ts";

/** How long a test waits for something that must happen. */
const PATIENCE_MS = 60_000;

/**
 * A gateway in the test's process: a configuration as users write it, in effect in the data plane of one worker. For
 * tests of what connections and requests do; it starts in milliseconds. `TestGateway` has files, reloads, threads, the admin
 * server and signals too.
 */
export class LocalGateway {
  readonly #plane: TestPlane;

  private constructor(plane: TestPlane) {
    this.#plane = plane;
  }

  static async start(config: object, options: PlaneOptions = {}): Promise<LocalGateway> {
    const gateway = new LocalGateway(new TestPlane(options));
    await gateway.reconfigure(config);
    return gateway;
  }

  /** Resolves with what is in effect. Throws when the configuration is rejected, or has settings of the process. */
  async reconfigure(config: object): Promise<PackedIr> {
    if ("config" in config) throw new Error("config.* takes a TestGateway");
    const ir = irOf(config);
    await this.#plane.apply(ir);
    return ir;
  }

  /** Where the gateway listens. */
  get own(): OwnSockets {
    return this.#plane.own;
  }

  /** What has been logged. */
  get lines(): LogLine[] {
    return this.#plane.lines.map((line) => JSON.parse(line) as LogLine);
  }

  /** What has been logged since the last call, for long runs. */
  takeLines(): LogLine[] {
    return this.#plane.lines.splice(0).map((line) => JSON.parse(line) as LogLine);
  }

  /** The port that a bind listens on, by its key (`bind/0`) or, without one, of the first bind. */
  port(bind?: string): number {
    const served = this.tasks().find((each) => bind === undefined || each.bind === bind);
    if (served === undefined) throw new Error(`no bind ${bind ?? ""} is served`);
    return served.port;
  }

  /** Binds with their connections, as `/debug/tasks` shows them. */
  tasks(): { bind: string; port: number; connections: unknown[] }[] {
    return this.#plane.plane.tasks() as { bind: string; port: number; connections: unknown[] }[];
  }

  /** The trace of the request or connection that `send` makes, once it is complete. */
  trace(send: () => Promise<unknown>, options: Partial<TraceOptions> = {}): Promise<TraceMessage[]> {
    return this.#plane.trace(send, options);
  }

  /** To be sampled by the test. */
  get overload(): Overload {
    return this.#plane.overload;
  }

  /** What the balancers know of each endpoint. */
  endpoints(): EndpointStats[] {
    return this.#plane.endpoints.stats();
  }

  /** The records of what is over. */
  get records(): readonly RequestRecord[] {
    return new Records([this.#plane.records]).find({ since: 0, limit: 1000 }).records;
  }

  metricsText(): string {
    return renderMetrics(this.#plane.metrics.snapshot(), []);
  }

  /** Waits until `condition` holds. Rejects after a bounded time. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!condition()) {
      if (Date.now() > deadline) throw new Error(`waited too long for ${what}: ${this.#plane.lines.slice(-5)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#plane[Symbol.asyncDispose]();
  }
}
