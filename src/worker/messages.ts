/**
 * Every message between the main thread and its workers: commands one way, replies and notices the other. A message is
 * structured-cloned, so it holds plain data; a class instance would arrive without its methods. State that all workers must
 * agree on at request speed (armed watches, token buckets) is in shared memory instead, because a message waits until the
 * receiving thread's event loop is free.
 */
import type { InheritedSocket } from "../base/inherited-sockets.ts";
import type { LogFormat } from "../base/log.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import type { RejectedPart } from "../ir/rejected-parts.ts";
import type { EgressOptions } from "../net/egress.ts";
import type { Ports } from "../proxy/data-plane.ts";
import type { OverloadLimits } from "../proxy/overload/overload.ts";
import type { DrainStep } from "../proxy/ports/drain.ts";
import type { Sharing } from "../proxy/ports/sharing.ts";
import type { ExpressionLimits } from "../proxy/services/expression-shares.ts";
import type { SeriesNotice } from "../telemetry/metrics.ts";
import type { Chunk } from "../telemetry/otlp/messages.ts";
import type { ProbeResult } from "../telemetry/probe-result.ts";
import type { AccessFormat, LoggedReasons } from "../telemetry/settings.ts";
import type { ThreadMemory } from "../telemetry/thread-memory.ts";
import type { TraceFilter } from "../trace/filter.ts";
import type { FollowedBatch, FollowFilter } from "../trace/follower.ts";
import type { PostedEvent, TraceOptions } from "../trace/tracer.ts";
import type { LookupFamily } from "../upstream/discovery/dns.ts";
import type { Locality } from "../upstream/discovery/locality.ts";
import type { EvictionNotice, HealthNotice } from "../upstream/endpoints/endpoint.ts";
import type { EndpointStats } from "../upstream/endpoints/endpoints.ts";
import type { NamesNotice } from "../upstream/endpoints/named-endpoints.ts";
import type { PoolSettings } from "../upstream/pools/pool.ts";
import type { RingSpan } from "./log-ring.ts";
import type { CpuProfile, HeapProfile } from "./profiles.ts";

export interface RecorderOptions {
  /** Shared memory of the `Recorder`. */
  readonly memory: SharedArrayBuffer;
  /** Shared memory of the `SampleRing`; undefined: no samples are taken. */
  readonly samples: SharedArrayBuffer | undefined;
  /** For the digests of secrets in samples. */
  readonly sampleKey: Uint8Array;
  readonly clientAddress: boolean;
}

interface AccessLogOptions {
  readonly format: AccessFormat;
  readonly reasons: LoggedReasons;
  /** Its lines go to a place of their own. */
  readonly apart: boolean;
}

/** The first message to a worker: what is fixed for its life. It is not `workerData`, so a thread can start before it is known. */
export interface WorkerOptions {
  /** 0 to the number of workers - 1; a replacement has the index of the worker that died. */
  readonly index: number;
  /** Shared memory of the `TraceGate`. */
  readonly gate: SharedArrayBuffer;
  /** Shared memory of the worker's own `LogRing`. */
  readonly logRing: SharedArrayBuffer;
  /** That of another one, for lines of the access log that go apart; undefined: they go with the others. */
  readonly accessRing: SharedArrayBuffer | undefined;
  /** Shared memory of the worker's own `FollowCounters`. */
  readonly followCounters: SharedArrayBuffer;
  /** Undefined: the recorder is off. */
  readonly recorder?: RecorderOptions | undefined;
  /** Shared memory of the `TokenBuckets`. */
  readonly buckets: SharedArrayBuffer;
  /** Shared memory of the `RequestCounts`. */
  readonly requestCounts: SharedArrayBuffer;
  /** Shared memory of the `SharedSessions` of `oidc`. */
  readonly oidcSessions: SharedArrayBuffer;
  /** Shared memory of the `SharedLoads`; undefined: there is one worker. */
  readonly loads?: SharedArrayBuffer | undefined;
  /** Shared memory of the `TicketSecrets`. */
  readonly tickets: SharedArrayBuffer;
  /** Shared memory of the `MemoryPressure`. */
  readonly pressure: SharedArrayBuffer;
  readonly overload: OverloadLimits;
  readonly expressions: ExpressionLimits;
  readonly pool: PoolSettings;
  readonly lookupFamily: LookupFamily;
  /** Shared memory of the `LookupLanes` of lookups; absent: the worker has its own. */
  readonly lookupLanes?: SharedArrayBuffer;
  /** Limit of this worker's connections, of clients and to backends and callouts together; undefined: no limit. */
  readonly connections?: number | undefined;
  readonly sensitiveHeaders: readonly string[];
  /** Key that seals OpenID session cookies; undefined: the environment has none, and `oidc` policies are rejected. */
  readonly oidcCookieKey?: Uint8Array | undefined;
  /** Seals the sessions of `sessionPersistence`. */
  readonly sessionKey: Uint8Array;
  readonly env: Readonly<Record<string, string>>;
  /** Where this gateway runs, for the choice of near endpoints. */
  readonly locality: Locality;
  readonly logFilter: string;
  readonly logFormat: LogFormat;
  readonly accessLog: AccessLogOptions;
  readonly reusePort: boolean;
  /** `config.metrics.fields.add`: label to CEL. */
  readonly metricLabels: Readonly<Record<string, string>>;
  /** Definitions of the functions that `metricLabels` may call. */
  readonly customFunctions: string;
  /** Shared memory of the `OwnSockets`. */
  readonly ownSockets: SharedArrayBuffer;
  /** Which addresses this worker may connect to. */
  readonly egress: EgressOptions & { readonly internalSocket: string };
}

/** The commands of a worker, each with its arguments and, if it has one, its reply. */
interface Commands {
  /** Builds a configuration beside the one in effect. `commit` or `abort` follows once all workers have replied. */
  prepare: { args: { generation: number; configuration: PackedIr; ports: Ports; inherited: Sharing["inherited"] } };
  /** Swaps to the prepared configuration and drains what only the old one needs. */
  commit: { args: undefined };
  /** Drops the prepared configuration; without one it does nothing. */
  abort: { args: undefined };
  /** The next request that matches `filter` is traced for watcher `id`; `slot` is its place in the gate. */
  watch: { args: { id: number; slot: number; filter: TraceFilter; options: TraceOptions } };
  /** Every request that `filter` chooses is traced for follower `id`, as long as its `slot` of the gate is armed. */
  follow: { args: { id: number; slot: number; filter: FollowFilter; options: TraceOptions } };
  /** Ends what `watch` or `follow` began. */
  unwatch: { args: { id: number } };
  logFilter: { args: { filter: string } };
  /** All, or those with these keys. */
  endpoints: { args: { keys?: readonly string[] | undefined }; reply: readonly EndpointStats[] };
  /** Probes those of these endpoints that the worker knows, once. */
  probe: { args: { keys: readonly string[] }; reply: readonly ProbeResult[] };
  /** Calls by the key of the backend. */
  calls: { args: undefined; reply: ReadonlyMap<string, number> };
  /** Requests and connections in progress, for display. */
  tasks: { args: undefined; reply: readonly unknown[] };
  memory: { args: undefined; reply: ThreadMemory };
  /** `frequency` in Hz; `id` distinguishes profiles that run at the same time. */
  cpuStart: { args: { id: number; frequency: number } };
  /** The reply is undefined when this thread replaced a worker after `cpuStart`, so it has no such profile. */
  cpuStop: { args: { id: number }; reply: CpuProfile | undefined };
  heap: { args: undefined; reply: HeapProfile };
  /** Another worker has evicted an endpoint. */
  evict: { args: { notice: EvictionNotice } };
  /** This worker makes the active health checks from now on, for all workers. */
  checkHealth: { args: undefined };
  /** A result of another worker's active health checks. */
  health: { args: { notice: HealthNotice } };
  /** Another worker has found the addresses of a name. */
  names: { args: { notice: NamesNotice } };
  sockets: { args: undefined; reply: readonly InheritedSocket[] };
  /** See `DataPlane.handOver`. */
  handOver: { args: undefined };
  /** One step of the drain; resolves when it is done, or after `deadlineMs`. */
  drain: { args: { step: DrainStep; deadlineMs: number } };
  /** Cuts all connections and replies with their number. Also flushes logs and exports: the thread ends after it. */
  destroy: { args: undefined; reply: number };
}

export type CommandName = keyof Commands;
export type Args<Name extends CommandName> = Commands[Name]["args"];
export type Reply<Name extends CommandName> = Commands[Name] extends { readonly reply: infer Value } ? Value : unknown;

/** A command with a number that its reply repeats: replies may come in any order. */
export interface Request<Name extends CommandName = CommandName> {
  readonly call: number;
  readonly name: Name;
  readonly args: Args<Name>;
}

/** From a worker: the reply to a command, or something that happened. */
export type Notice =
  | { readonly type: "reply"; readonly call: number; readonly value: unknown }
  /** The command has failed. */
  /** `parts`: those of a configuration that cannot be applied, if that is why. */
  | {
      readonly type: "failure";
      readonly call: number;
      readonly message: string;
      readonly parts?: readonly RejectedPart[];
    }
  /** `event` undefined: the trace has ended. */
  | { readonly type: "trace"; readonly id: number; readonly event: PostedEvent | undefined }
  /** Events of requests that someone follows. */
  | { readonly type: "followed"; readonly id: number; readonly slot: number; readonly batch: FollowedBatch }
  /** Shared memory of new counters, which the main thread reads from then on. */
  | { readonly type: "series"; readonly notice: SeriesNotice }
  /** This worker has evicted an endpoint. */
  | { readonly type: "evicted"; readonly notice: EvictionNotice }
  /** An active health check of this worker has changed the state of an endpoint. */
  | { readonly type: "health"; readonly notice: HealthNotice }
  /** The addresses of a name that this worker follows have changed. */
  | { readonly type: "names"; readonly notice: NamesNotice }
  /** A request of this worker needs a newer version of a document. */
  | { readonly type: "documentWanted"; readonly url: string }
  /** Log lines are in this part of the worker's `LogRing`. */
  | { readonly type: "log"; readonly part: RingSpan }
  /** The same of its `accessRing`. */
  | { readonly type: "accessLog"; readonly part: RingSpan }
  /** Spans or log records for one exporter. */
  | { readonly type: "export"; readonly exporter: string; readonly chunk: Chunk };
