/**
 * The main thread's view of the data plane: N worker threads that serve the same configuration.
 *
 * In: configurations to apply, commands (traces, log filter, drain) and questions (metrics, endpoints, tasks), from the gateway
 * in src/main/. Out: commands to the workers through `WorkerHandle`, and their logs, exports and deaths through
 * `SupervisorEvents`. Requests never pass here: each worker listens on every port and serves its connections alone, so a
 * blocked main thread stops reloads and reports, not traffic.
 *
 * Failure model: a worker may die at any moment, in the middle of any command. The state that a replacement needs (the
 * configuration in effect, ports, watches, log filter, evictions, health) is kept here, and its counters stay in the totals.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { asError } from "../base/errors.ts";
import type { InheritedSocket, InheritedSockets } from "../base/inherited-sockets.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { bindAddresses, formatBindAddress } from "../ir/bind-addresses.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import { createCounts, RequestCounts } from "../policies/request-counts/request-counts.ts";
import { sessionMemory } from "../policies/shared-sessions/shared-sessions.ts";
import { TokenBuckets } from "../policies/token-buckets/buckets.ts";
import type { Ports } from "../proxy/data-plane.ts";
import { MemoryPressure } from "../proxy/overload/memory-pressure.ts";
import { DRAIN_STEPS } from "../proxy/ports/drain.ts";
import { RecorderMemory } from "../recorder/memory.ts";
import { SampleRing } from "../recorder/sample-ring.ts";
import { type MetricsSnapshot, mergeSnapshots, type RequestVisitor } from "../telemetry/metrics.ts";
import type { Chunk } from "../telemetry/otlp/messages.ts";
import type { ProbeResult } from "../telemetry/probe-result.ts";
import { EndedSeries } from "../telemetry/traffic.ts";
import type { WorkerState } from "../telemetry/worker-state.ts";
import { TICKET_PERIOD_MS, TicketSecrets } from "../tls/ticket-keys.ts";
import type { FollowedBatch } from "../trace/follower.ts";
import { TraceGate } from "../trace/gate.ts";
import type { PostedEvent } from "../trace/tracer.ts";
import type { EvictionNotice, HealthNotice } from "../upstream/endpoints/endpoint.ts";
import { combineThreads, type EndpointStats } from "../upstream/endpoints/endpoints.ts";
import type { NamesNotice } from "../upstream/endpoints/named-endpoints.ts";
import { SharedLoads } from "../upstream/loads/shared-loads.ts";
import { EndpointHealth } from "./endpoint-health.ts";
import type { Args, CommandName, Reply, WorkerOptions } from "./messages.ts";
import { probePorts } from "./ports.ts";
import { TraceHub } from "./trace-hub.ts";
import { type WorkerEvents, WorkerHandle } from "./worker-handle.ts";
import { WorkerThreads } from "./worker-threads.ts";

/**
 * A worker that dies within this time after its start is replaced after a pause: compiling a large configuration only to die
 * again, in a loop, would take a core from the workers that still serve.
 */
const EARLY_DEATH_MS = 5000;
const RESTART_PAUSE_MS = 1000;
/** Reports leave out workers that have not replied by then, so that one blocked worker does not hang the admin server. */
const REPORT_TIMEOUT_MS = 2000;

/** Options that differ from worker to worker, or that the supervisor makes. */
type OwnOption =
  | "index"
  | "gate"
  | "followCounters"
  | "buckets"
  | "requestCounts"
  | "oidcSessions"
  | "loads"
  | "tickets"
  | "pressure"
  | "ownSockets"
  | "logRing"
  | "accessRing"
  | "recorder";

interface RecorderSizes {
  /** Bytes for each worker; no samples: 0. */
  readonly recent: number;
  readonly kept: number;
  readonly samples: number;
  /** Records and samples have the addresses of clients. */
  readonly clientAddress: boolean;
}

/** What is fixed for the life of the process. */
export interface SupervisorSettings {
  /** Threads of the data plane, at least 1. */
  readonly workers: number;
  /** Where the process listens; with a region for each worker. */
  readonly own: OwnSockets;
  /** Sockets to use instead of new ones; absent: none. */
  readonly inherited?: InheritedSockets | undefined;
  /** Undefined: the recorder is off. */
  readonly recorder?: RecorderSizes | undefined;
  /** Options that all workers share. */
  readonly worker: Omit<WorkerOptions, OwnOption>;
}

/** What workers send besides replies, for the gateway. */
export interface SupervisorEvents {
  /** See `WorkerEvents`. */
  onLog(lines: Uint8Array, dropped: number, apart: boolean): void;
  /** Spans or log records for the exporter with this `exporterKey`. */
  onExport(exporter: string, chunk: Chunk): void;
  /** See `WorkerEvents`. */
  onDocumentWanted(url: string): void;
  /** A worker ended although nothing had stopped it. Its replacement is already starting. */
  onWorkerDeath(name: string, error: Error): void;
}

/** Workers died while they prepared a configuration, and so did their replacements: it must not be repeated without limit. */
export class WorkersDied extends Error {}

/** A trace session as a replacement needs it. */
interface Watch {
  readonly slot: number;
  begin(replacement: WorkerHandle): Promise<void>;
}

/** Starts the workers, replaces dead ones, and keeps all at the same configuration, watches and log filter. */
export class Supervisor implements WorkerEvents {
  readonly hub: TraceHub;
  /** Shared memory: whether the process is short of memory. */
  readonly pressure: MemoryPressure;
  readonly #settings: SupervisorSettings;
  readonly #events: SupervisorEvents;
  /** Shared memory: which watches are armed, and which worker claimed which. */
  readonly #gate = new TraceGate();
  /** Shared memory: token buckets of rate limits, so that a limit holds for the process and not for each worker. */
  readonly #buckets = new TokenBuckets();
  /** Shared memory: requests in progress, by the keys of concurrency limits. */
  readonly #requestCounts: RequestCounts;
  /** Shared memory: which sessions of `oidc` are being refreshed or are revoked. */
  readonly #oidcSessions = sessionMemory();
  /** Shared memory: calls in progress at endpoints; undefined: there is one worker, which knows all of them. */
  readonly #loads: SharedArrayBuffer | undefined;
  /** Shared memory: what session tickets of TLS are encrypted with, so that every worker resumes the sessions of all. */
  readonly #tickets = new TicketSecrets();
  /** Shared memory: the records of each worker, by its index. */
  readonly recorders: readonly RecorderMemory[];
  /** Of each worker; empty: no samples are taken. */
  readonly samples: readonly SampleRing[];
  /** For the digests of secrets in samples; new in each run of the gateway. */
  readonly sampleKey = randomBytes(32);
  readonly #rotation: NodeJS.Timeout;
  readonly #threads: WorkerThreads;
  readonly #workers = new Map<number, WorkerHandle>();
  readonly health = new EndpointHealth(this.#workers);
  readonly #watches = new Map<number, Watch>();
  /** Counters of dead workers: Prometheus counters must not go back. */
  #retired: MetricsSnapshot = {};
  readonly #ended = new EndedSeries();
  /** How often the worker with this index has died. */
  readonly #deaths = new Map<number, number>();
  readonly #startedAt = new Map<number, number>();
  #current: { readonly generation: number; readonly configuration: PackedIr } | undefined;
  #ports: Ports = {};
  /** The inherited sockets of each worker, until a configuration is in effect. */
  #shares: ReturnType<InheritedSockets["divide"]> | undefined;
  #logFilter: string;
  #stopping = false;
  /** Serializes configuration changes and replacements: a worker that starts during a `commit` would miss it. */
  #queue: Promise<unknown> = Promise.resolve();

  /** `threads` may hold threads that were started before the configuration was known; missing ones are started. */
  constructor(settings: SupervisorSettings, events: SupervisorEvents, threads = new WorkerThreads(0)) {
    this.#settings = settings;
    this.pressure = new MemoryPressure(settings.workers);
    this.#requestCounts = new RequestCounts(createCounts(settings.workers));
    const { recorder, workers } = settings;
    this.#loads = workers > 1 ? SharedLoads.memoryFor(workers) : undefined;
    const ofEachWorker = recorder === undefined ? [] : Array.from({ length: workers }, () => recorder);
    this.recorders = ofEachWorker.map(({ recent, kept }) => RecorderMemory.create(recent, kept));
    this.samples = ofEachWorker.flatMap(({ samples }) => (samples === 0 ? [] : [SampleRing.create(samples)]));
    this.#events = events;
    this.#threads = threads;
    this.#logFilter = settings.worker.logFilter;
    this.#rotation = setInterval(() => this.#tickets.rotate(), TICKET_PERIOD_MS).unref();
    this.hub = new TraceHub(this.#gate, {
      watch: (id, slot, filter, options) => this.#watch("watch", { id, slot, filter, options }),
      follow: (id, slot, filter, options) => this.#watch("follow", { id, slot, filter, options }),
      unwatch: (id) => {
        this.#watches.delete(id);
        this.#all("unwatch", { id }).catch(() => {});
      },
    });
  }

  /** The ports in use by bind key; where the configuration says 0, the one that the system chose. */
  get ports(): Ports {
    return this.#ports;
  }

  /** Shared memory of the `TokenBuckets`. */
  get buckets(): SharedArrayBuffer {
    return this.#buckets.memory;
  }

  /** Shared memory of the `RequestCounts`. */
  get requestCounts(): SharedArrayBuffer {
    return this.#requestCounts.memory;
  }

  /** The live workers, in the order of their start. */
  get workers(): readonly WorkerHandle[] {
    return [...this.#workers.values()];
  }

  /** All that there should be, by their index. */
  get states(): readonly WorkerState[] {
    return Array.from({ length: this.#settings.workers }, (_, index) => {
      const worker = this.#workers.get(index);
      const generation = worker?.generation ?? null;
      const state = worker === undefined ? "dead" : generation === null ? "starting" : "serving";
      return { name: `worker-${index}`, state, generation, deaths: this.#deaths.get(index) ?? 0 };
    });
  }

  /** Starts the workers. */
  start(): void {
    for (let index = 0; index < this.#settings.workers; index++) this.#spawn(index);
    this.#threads.close();
    this.health.electChecker();
  }

  /**
   * Two-phase reload: prepares the configuration in every worker, then commits it in all, or in none. Rejects with the first
   * worker's error (PortError, WorkerError) or with WorkersDied; the configuration in effect then stays. A worker that dies
   * meanwhile does not fail the reload: its replacement prepares the same configuration once more.
   */
  apply(generation: number, configuration: PackedIr): Promise<void> {
    return this.#enqueue(async () => {
      const { inherited } = this.#settings;
      const { binds } = configuration.frame;
      const { ports, release } = await probePorts(
        binds,
        this.#ports,
        this.#settings.worker.reusePort,
        this.#settings.own,
        inherited,
      );
      // Kept until a configuration is in effect: one that fails has not touched them.
      if (this.#current === undefined && inherited !== undefined)
        this.#shares ??= inherited.divide(
          binds.flatMap((bind) => bindAddresses(bind, bind.port).map(formatBindAddress)),
          this.#settings.workers,
        );
      try {
        // With a live worker, dead ones are replaced later. With none, nothing would prove that the configuration works.
        if (this.#workers.size === 0) for (const index of this.#missing()) await this.#replace(index);
        await this.#prepareAll(generation, configuration, ports);
      } catch (error) {
        const dead = this.#missing();
        if (dead.length === 0 || this.#stopping) throw error;
        // One death may be a coincidence, such as a defect that a request hit. A second one is blamed on the configuration.
        for (const index of dead) await this.#replace(index);
        await this.#prepareAll(generation, configuration, ports).catch((again: unknown) => {
          if (again instanceof WorkersDied || this.#missing().length === 0) throw again;
          throw new WorkersDied(`workers died while they prepared it: ${asError(again).message}`, { cause: again });
        });
      } finally {
        release();
      }
      this.#current = { generation, configuration };
      this.#ports = ports;
      this.#shares = undefined;
      // From here on there is no way back: a worker that fails to commit is ended, and its replacement starts with this one.
      await Promise.allSettled(this.workers.map((worker) => commit(worker, generation)));
    });
  }

  /** Counters of all workers, dead ones included. Read from shared memory, so a scrape does not wait for busy workers. */
  metrics(): MetricsSnapshot {
    return mergeSnapshots([this.#retired, ...this.workers.map(({ counters }) => counters.snapshot())]);
  }

  /** Shows the requests of all workers, dead ones included, a series of each at a time. */
  eachRequestSeries(visit: RequestVisitor): void {
    this.#ended.each(visit);
    for (const { counters } of this.workers) counters.eachRequestSeries(visit);
  }

  /** Statistics of endpoints, all or those with these keys, by key: counts summed over workers, health and latency averaged over those that used it. */
  async endpoints(keys?: readonly string[]): Promise<ReadonlyMap<string, EndpointStats>> {
    const merged = new Map<string, EndpointStats>();
    await this.#collect("endpoints", { keys }, (_index, list) => {
      for (const stats of list) {
        const before = merged.get(stats.key);
        merged.set(stats.key, before === undefined ? stats : combineThreads(before, stats));
      }
    });
    return merged;
  }

  /** Has each of these endpoints probed once, by a worker that knows it. @throws Error if none serves, or if it ends meanwhile */
  async probe(keys: readonly string[]): Promise<readonly ProbeResult[]> {
    if (this.workers.length === 0) throw new Error("no worker serves now");
    let left = keys;
    const results: ProbeResult[] = [];
    // Workers may know different addresses of a name.
    for (const worker of this.workers) {
      if (left.length === 0) break;
      const known = new Set((await worker.call("endpoints", { keys: left })).map(({ key }) => key));
      const own = left.filter((key) => known.has(key));
      left = left.filter((key) => !known.has(key));
      if (own.length > 0) results.push(...(await worker.call("probe", { keys: own })));
    }
    return results;
  }

  /** Calls by the key of the backend, summed over workers. */
  async backendCalls(): Promise<ReadonlyMap<string, number>> {
    const sums = new Map<string, number>();
    await this.#collect("calls", undefined, (_index, calls) => {
      for (const [key, total] of calls) sums.set(key, (sums.get(key) ?? 0) + total);
    });
    return sums;
  }

  /**
   * Requests and connections in progress by worker; a blocked worker is listed as not replying, which is what a reader looks for.
   */
  async tasks(): Promise<Readonly<Record<string, unknown>>> {
    const tasks: Record<string, unknown> = {};
    for (const worker of this.workers) tasks[worker.name] = "did not reply in time";
    await this.#collect("tasks", undefined, (index, list) => {
      tasks[`worker-${index}`] = list;
    });
    return tasks;
  }

  /** The reply of every worker by its name; workers that fail or do not reply within 2 s are left out. */
  async collect<Name extends CommandName>(name: Name, args: Args<Name>): Promise<ReadonlyMap<string, Reply<Name>>> {
    const replies = new Map<string, Reply<Name>>();
    await this.#collect(name, args, (index, value) => replies.set(`worker-${index}`, value));
    return replies;
  }

  /** Sets the log filter of all workers, present and future. `filter` has been validated. */
  async setLogFilter(filter: string): Promise<void> {
    this.#logFilter = filter;
    await this.#all("logFilter", { filter });
  }

  /** The listening sockets of all workers while `use` runs: no reload closes one meanwhile. */
  withSockets<T>(use: (sockets: readonly InheritedSocket[]) => Promise<T>): Promise<T> {
    return this.#enqueue(async () => {
      const sockets: InheritedSocket[] = [];
      await this.#collect("sockets", undefined, (_index, list) => void sockets.push(...list));
      return use(sockets);
    });
  }

  /**
   * Stops accepting, lets exchanges in progress finish for at most `deadlineMs`, then cuts the rest. Resolves with the number of
   * connections that were cut. Dead workers are not replaced from here on. `handedOver`: another process has the listening sockets.
   */
  async drain(deadlineMs: number, handedOver = false): Promise<number> {
    this.#stopping = true;
    const end = performance.now() + deadlineMs;
    if (handedOver) await this.#collect("handOver", undefined, () => {}, deadlineMs / 4);
    for (const step of DRAIN_STEPS) {
      const left = Math.max(0, end - performance.now());
      // A hanging worker may use up a quarter in each earlier step, so that the others keep time to finish their connections.
      const timeoutMs = step === "finish" ? left : Math.min(left, deadlineMs / 4);
      await this.#collect("drain", { step, deadlineMs }, () => {}, timeoutMs);
    }
    let cut = 0;
    await this.#collect("destroy", undefined, (_index, count) => {
      cut += count;
    });
    this.hub.shutDown();
    return cut;
  }

  /** Ends all workers at once; connections break. After a drain, none are left. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#rotation);
    await Promise.all(this.workers.map((worker) => worker.stop()));
  }

  // ── events of workers ──

  onTrace(id: number, event: PostedEvent | undefined): void {
    this.hub.deliver(id, event);
  }

  onFollowed({ index }: WorkerHandle, id: number, batch: FollowedBatch): void {
    this.hub.deliverFollowed(id, index, batch);
  }

  onLog(lines: Uint8Array, dropped: number, apart: boolean): void {
    this.#events.onLog(lines, dropped, apart);
  }

  onExport(exporter: string, chunk: Chunk): void {
    this.#events.onExport(exporter, chunk);
  }

  onEvicted(handle: WorkerHandle, notice: EvictionNotice): void {
    this.health.evicted(handle, notice);
  }

  onHealth(handle: WorkerHandle, notice: HealthNotice): void {
    this.health.checked(handle, notice);
  }

  onNames(handle: WorkerHandle, notice: NamesNotice): void {
    this.health.found(handle, notice);
  }

  onDocumentWanted(url: string): void {
    this.#events.onDocumentWanted(url);
  }

  onExit(handle: WorkerHandle, error: Error | undefined): void {
    if (error === undefined) return;
    const { index } = handle;
    const orphans = [...this.#watches].filter(([, { slot }]) => this.#gate.claimant(slot) === index).map(([id]) => id);
    this.hub.workerDied(index, handle.followed);
    this.hub.abandon(orphans, "the worker that served the request has died");
    if (this.#stopping) return;
    this.#workers.delete(index);
    this.#deaths.set(index, (this.#deaths.get(index) ?? 0) + 1);
    handle.counters.eachRequestSeries((labels, traffic) => this.#ended.add(labels, traffic));
    this.health.electChecker();
    // A thread may die between lock and unlock; the others would then wait for its bucket forever.
    this.#buckets.releaseLocksOf(index);
    // Its requests and calls have ended with it.
    this.#requestCounts.endWorker(index);
    if (this.#loads !== undefined) new SharedLoads(this.#loads).forget(index);
    // Gauges end with the thread, counters stay.
    const counters = handle.counters.snapshot();
    const { requests_in_flight: _1, udp_sessions: _2, event_loop_lag_seconds: _3, ...others } = counters;
    const { overloaded_workers: _4, ...counted } = others;
    this.#retired = mergeSnapshots([this.#retired, counted]);
    this.pressure.hold(index, 0);
    this.#events.onWorkerDeath(handle.name, error);
    const early = performance.now() - (this.#startedAt.get(index) ?? 0) < EARLY_DEATH_MS;
    void this.#restart(index, early);
  }

  // ── reload and replacement ──

  /** Rejects with the first error, once every worker has replied and dropped what it prepared. */
  async #prepareAll(generation: number, configuration: PackedIr, ports: Ports): Promise<void> {
    if (this.#workers.size === 0) throw new WorkersDied("no worker is left to prepare it");
    const args = preparation(generation, configuration, ports);
    const outcomes = await Promise.allSettled(
      this.workers.map((worker) =>
        worker.callWithDeadline("prepare", { ...args, inherited: this.#shares?.[worker.index] ?? {} }),
      ),
    );
    const failure = outcomes.find((outcome) => outcome.status === "rejected");
    if (failure === undefined) return;
    await this.#all("abort", undefined);
    throw failure.reason;
  }

  /** Indexes of dead workers without a replacement. */
  #missing(): number[] {
    return Array.from({ length: this.#settings.workers }, (_, index) => index).filter(
      (index) => !this.#workers.has(index),
    );
  }

  async #restart(index: number, early: boolean): Promise<void> {
    if (early) await delay(RESTART_PAUSE_MS);
    await this.#enqueue(() => this.#replace(index));
  }

  /** Starts a worker in place of a dead one and brings it to the state of the others. */
  async #replace(index: number): Promise<void> {
    if (this.#stopping || this.#workers.has(index)) return;
    const worker = this.#spawn(index);
    try {
      // Before it accepts: it must not send requests to endpoints that the others have evicted.
      await this.health.tell(worker);
      this.health.electChecker();
      // Before it accepts too: its first requests are followed.
      for (const watch of this.#watches.values()) await watch.begin(worker);
      if (this.#current !== undefined) {
        await worker.callWithDeadline(
          "prepare",
          preparation(this.#current.generation, this.#current.configuration, this.#ports),
        );
        await commit(worker, this.#current.generation);
      }
    } catch (error) {
      // It died again, or cannot serve, for example because another process took its port. Either way its exit starts the
      // next attempt, after the pause for early deaths.
      worker.fail(asError(error));
    }
  }

  #spawn(index: number): WorkerHandle {
    const options = {
      ...this.#settings.worker,
      logFilter: this.#logFilter,
      index,
      gate: this.#gate.buffer,
      recorder: this.#recorderOf(index),
      buckets: this.#buckets.memory,
      requestCounts: this.#requestCounts.memory,
      oidcSessions: this.#oidcSessions,
      loads: this.#loads,
      tickets: this.#tickets.memory,
      pressure: this.pressure.memory,
      ownSockets: this.#settings.own.memory,
    };
    const handle = new WorkerHandle(this.#threads.take(index), options, this);
    this.#workers.set(index, handle);
    this.#startedAt.set(index, performance.now());
    return handle;
  }

  /** The memory goes from a dead worker to its replacement. */
  #recorderOf(index: number): WorkerOptions["recorder"] {
    const memory = this.recorders[index]?.buffer;
    if (memory === undefined) return undefined;
    const clientAddress = this.#settings.recorder?.clientAddress ?? false;
    return { memory, samples: this.samples[index]?.buffer, sampleKey: this.sampleKey, clientAddress };
  }

  #enqueue<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(task);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  /** Begins a trace session in all workers, and later in their replacements. */
  async #watch<Name extends "watch" | "follow">(name: Name, args: Args<Name>): Promise<void> {
    const { id, slot } = args;
    this.#watches.set(id, { slot, begin: (replacement) => replacement.callWithDeadline(name, args) });
    await this.#all(name, args);
  }

  /**
   * Sends a command to all workers and waits for all. Failures are not the caller's concern: the replacement of a dead worker gets
   * the state at its start.
   */
  async #all<Name extends CommandName>(name: Name, args: Args<Name>): Promise<void> {
    await Promise.allSettled(this.workers.map((worker) => worker.callWithDeadline(name, args)));
  }

  /** Calls `onReply` for each worker that replies within `timeoutMs`; failures and late replies are ignored. */
  async #collect<Name extends CommandName>(
    name: Name,
    args: Args<Name>,
    onReply: (index: number, value: Reply<Name>) => void,
    timeoutMs = REPORT_TIMEOUT_MS,
  ): Promise<void> {
    const timer = new AbortController();
    const late = delay(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined);
    const calls = this.workers.map(async (worker) => {
      const reply = worker.call(name, args).then(
        (value) => ({ value }),
        () => undefined,
      );
      const first = await Promise.race([reply, late]);
      if (first !== undefined) onReply(worker.index, first.value);
    });
    await Promise.all(calls);
    timer.abort();
  }
}

async function commit(worker: WorkerHandle, generation: number): Promise<void> {
  await worker.callWithDeadline("commit", undefined);
  worker.generation = generation;
}

/** Arguments of `prepare`, without what only a dump shows: each worker would keep its own copy of it. */
function preparation(generation: number, configuration: PackedIr, ports: Ports): Args<"prepare"> {
  const { frame } = configuration;
  const targeted = frame.targeted.map((each) => ({ ...each, target: {}, policy: {} }));
  return { generation, configuration: { ...configuration, frame: { ...frame, targeted } }, ports, inherited: {} };
}
