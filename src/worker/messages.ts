/** Every message between the main thread and the workers: commands one way, answers and notices the other. */
import type { PackedIr } from "../ir/packed-ir.ts";
import type { Ports } from "../proxy/data-plane.ts";
import type { DrainStep } from "../proxy/ingress/drain.ts";
import type { AccessLogFormat } from "../telemetry/access-log.ts";
import type { SeriesNotice } from "../telemetry/metrics.ts";
import type { Chunk } from "../telemetry/otlp/messages.ts";
import type { ThreadMemory } from "../telemetry/thread-memory.ts";
import type { TraceFilter } from "../trace/filter.ts";
import type { TraceOptions } from "../trace/tracer.ts";
import type { EvictionNotice } from "../upstream/endpoint.ts";
import type { BackendCalls, EndpointStats } from "../upstream/endpoints.ts";
import type { Locality } from "../upstream/locality.ts";
import type { PoolSettings } from "../upstream/pool.ts";
import type { LookupFamily } from "../upstream/resolver.ts";
import type { CpuProfile, HeapProfile } from "./profiles.ts";

/** The first message to a worker. */
export interface WorkerOptions {
  readonly index: number;
  readonly gate: SharedArrayBuffer;
  /** Of the worker's `LogWindow`. */
  readonly logWindow: SharedArrayBuffer;
  /** Memory of the token buckets. */
  readonly buckets: SharedArrayBuffer;
  readonly pool: PoolSettings;
  readonly lookupFamily: LookupFamily;
  /** Of all ports of this worker together; undefined = any number. */
  readonly clientConnections?: number | undefined;
  readonly sensitiveHeaders: readonly string[];
  /** Seals cookies; undefined when the environment has none. */
  readonly oidcCookieKey?: Uint8Array | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Where this gateway runs. */
  readonly locality: Locality;
  readonly logFilter: string;
  readonly logFormat: AccessLogFormat;
  readonly reusePort: boolean;
  /** `config.metrics.fields.add`: label to CEL. */
  readonly metricLabels: Readonly<Record<string, string>>;
  /** Definitions of the functions that `metricLabels` may call. */
  readonly customFunctions: string;
  /** Where the admin API listens. */
  readonly adminPorts: readonly number[];
  /** Where `internal` backends are served. */
  readonly internalSocket: string;
}

/** What the main thread can have a worker do: each command with its arguments, and with its answer if it has one. */
export interface Commands {
  /** Builds a configuration beside the one in effect. `commit` or `abort` follows once all workers have answered. */
  prepare: { args: { generation: number; configuration: PackedIr; ports: Ports } };
  commit: { args: undefined };
  abort: { args: undefined };
  /** The next request that matches `filter` is traced for watcher `id`; `slot` is its place in the gate. */
  watch: { args: { id: number; slot: number; filter: TraceFilter; options: TraceOptions } };
  unwatch: { args: { id: number } };
  logFilter: { args: { filter: string } };
  endpoints: { args: undefined; answer: readonly EndpointStats[] };
  /** By key of the backend. */
  calls: { args: undefined; answer: ReadonlyMap<string, BackendCalls> };
  /** Requests and connections in progress, for people. */
  tasks: { args: undefined; answer: readonly unknown[] };
  memory: { args: undefined; answer: ThreadMemory };
  /** `frequency` in Hz; `id` distinguishes profiles that run at the same time. */
  cpuStart: { args: { id: number; frequency: number } };
  /** undefined: this thread has not started the profile, because it is younger. */
  cpuStop: { args: { id: number }; answer: CpuProfile | undefined };
  heap: { args: undefined; answer: HeapProfile };
  /** Another worker has evicted an endpoint. */
  evict: { args: { notice: EvictionNotice } };
  drain: { args: { step: DrainStep; deadlineMs: number } };
  /** Ends all connections; answers how many there were. */
  destroy: { args: undefined; answer: number };
}

export type CommandName = keyof Commands;
export type Args<Name extends CommandName> = Commands[Name]["args"];
export type Answer<Name extends CommandName> = Commands[Name] extends { readonly answer: infer Value }
  ? Value
  : unknown;

/** From the main thread: a command, and the number that its answer carries. */
export interface Request<Name extends CommandName = CommandName> {
  readonly call: number;
  readonly name: Name;
  readonly args: Args<Name>;
}

export type Notice =
  | { readonly type: "answer"; readonly call: number; readonly value: unknown }
  | { readonly type: "failure"; readonly call: number; readonly message: string; readonly code: string | undefined }
  /** `event` undefined: the trace has ended. */
  | { readonly type: "trace"; readonly id: number; readonly event: string | undefined }
  /** Shared memory of new counters. */
  | { readonly type: "series"; readonly notice: SeriesNotice }
  | { readonly type: "evicted"; readonly notice: EvictionNotice }
  /** Log lines as UTF-8, each with its line break. */
  | { readonly type: "log"; readonly lines: Uint8Array }
  /** Spans or log records for one exporter. */
  | { readonly type: "export"; readonly exporter: string; readonly chunk: Chunk };
