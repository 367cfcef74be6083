/** Every message between the main thread and the workers. Both sides are in this folder. */
import type { PackedIr } from "../ir/packed-ir.ts";
import type { Ports } from "../proxy/data-plane.ts";
import type { DrainStep } from "../proxy/ingress/drain.ts";
import type { AccessLogFormat } from "../telemetry/access-log.ts";
import type { SeriesNotice } from "../telemetry/metrics.ts";
import type { Chunk } from "../telemetry/otlp/messages.ts";
import type { TraceFilter } from "../trace/filter.ts";
import type { TraceOptions } from "../trace/tracer.ts";
import type { EvictionNotice } from "../upstream/endpoint.ts";
import type { BackendCalls, EndpointStats } from "../upstream/endpoints.ts";
import type { Locality } from "../upstream/locality.ts";
import type { PoolSettings } from "../upstream/pool.ts";
import type { LookupFamily } from "../upstream/resolver.ts";

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

export type Command =
  /** Steps of a configuration change: `prepare`, then, when all workers have answered, `commit` or `abort`. */
  | {
      readonly type: "prepare";
      readonly generation: number;
      readonly configuration: PackedIr;
      readonly ports: Ports;
    }
  | { readonly type: "commit" }
  | { readonly type: "abort" }
  | {
      readonly type: "watch";
      readonly id: number;
      readonly slot: number;
      readonly filter: TraceFilter;
      readonly options: TraceOptions;
    }
  | { readonly type: "unwatch"; readonly id: number }
  | { readonly type: "logFilter"; readonly filter: string }
  | { readonly type: "endpoints" }
  /** Calls by the key of the backend. */
  | { readonly type: "calls" }
  | { readonly type: "tasks" }
  | { readonly type: "memory" }
  | { readonly type: "cpuStart"; readonly id: number; readonly frequency: number }
  | { readonly type: "cpuStop"; readonly id: number }
  | { readonly type: "heap" }
  /** Another worker has evicted an endpoint. */
  | { readonly type: "evict"; readonly notice: EvictionNotice }
  | { readonly type: "drain"; readonly step: DrainStep; readonly deadlineMs: number }
  | { readonly type: "destroy" };

/** What the answer to each command carries. */
export interface Answers {
  readonly endpoints: readonly EndpointStats[];
  readonly calls: ReadonlyMap<string, BackendCalls>;
  readonly tasks: readonly unknown[];
  readonly destroy: number;
}

/** From the main thread: a command and the number its answer comes back with. */
export interface Request {
  readonly call: number;
  readonly command: Command;
}

export type Notice =
  | { readonly type: "answer"; readonly call: number; readonly value: unknown }
  | { readonly type: "failure"; readonly call: number; readonly message: string; readonly code: string | undefined }
  /** `event` undefined: the trace has ended. */
  | { readonly type: "trace"; readonly id: number; readonly event: string | undefined }
  /** Where new counters are, for whoever wants to read them. */
  | { readonly type: "series"; readonly notice: SeriesNotice }
  | { readonly type: "evicted"; readonly notice: EvictionNotice }
  /** Lines as UTF-8, each with its line break. */
  | { readonly type: "log"; readonly lines: Uint8Array }
  /** Spans or log records for one exporter. */
  | { readonly type: "export"; readonly exporter: string; readonly chunk: Chunk };
