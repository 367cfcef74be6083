import { setTimeout as delay } from "node:timers/promises";
import { asError } from "../base/errors.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import { TokenBuckets } from "../policies/local-rate-limit/buckets.ts";
import type { Ports } from "../proxy/data-plane.ts";
import { DRAIN_STEPS } from "../proxy/ingress/drain.ts";
import { type MetricsSnapshot, mergeSnapshots } from "../telemetry/metrics.ts";
import type { Chunk } from "../telemetry/otlp/messages.ts";
import type { TraceFilter } from "../trace/filter.ts";
import { TraceGate } from "../trace/gate.ts";
import type { TraceOptions } from "../trace/tracer.ts";
import type { EvictionNotice } from "../upstream/endpoint.ts";
import { Evictions } from "../upstream/endpoint.ts";
import { combineStats, type EndpointStats } from "../upstream/endpoints.ts";
import type { Answer, Args, CommandName, WorkerOptions } from "./messages.ts";
import { probePorts } from "./ports.ts";
import { TraceHub } from "./trace-hub.ts";
import { type WorkerEvents, WorkerHandle } from "./worker-handle.ts";
import { WorkerThreads } from "./worker-threads.ts";

/** A worker that dies this soon after its start is restarted only after a pause. */
const EARLY_DEATH_MS = 5000;
const RESTART_PAUSE_MS = 1000;
/** A worker that does not answer within this time is left out of a report. */
const ANSWER_MS = 2000;

export interface SupervisorSettings {
  readonly workers: number;
  readonly worker: Omit<WorkerOptions, "index" | "gate" | "buckets" | "adminPorts" | "logWindow">;
}

export interface SupervisorEvents {
  /** See `WorkerEvents`. */
  onLog(lines: Uint8Array, dropped: number): void;
  /** Spans or log records, as `exporterKey` names who is to export them. */
  onExport(exporter: string, chunk: Chunk): void;
  onWorkerDeath(name: string, error: Error): void;
}

/** Workers have died while they built a configuration, and so have their replacements. */
export class WorkersDied extends Error {}

interface Watch {
  readonly slot: number;
  readonly filter: TraceFilter;
  readonly options: TraceOptions;
}

/** Keeps the workers alive and of one mind: the same configuration, the same watchers, the same log filter. */
export class Supervisor implements WorkerEvents {
  readonly hub: TraceHub;
  readonly #settings: SupervisorSettings;
  readonly #events: SupervisorEvents;
  readonly #gate = new TraceGate();
  readonly #buckets = new TokenBuckets();
  readonly #evictions = new Evictions();
  readonly #threads: WorkerThreads;
  readonly #workers = new Map<number, WorkerHandle>();
  readonly #watches = new Map<number, Watch>();
  /** Counts of workers that have died. */
  #retired: MetricsSnapshot = {};
  readonly #startedAt = new Map<number, number>();
  #current: { readonly generation: number; readonly configuration: PackedIr } | undefined;
  #ports: Ports = {};
  #adminPorts: readonly number[] = [];
  #logFilter: string;
  #stopping = false;
  /** Configuration changes and worker starts, one after the other. */
  #queue: Promise<unknown> = Promise.resolve();

  /** `threads`: those that have been started already. */
  constructor(settings: SupervisorSettings, events: SupervisorEvents, threads = new WorkerThreads(0)) {
    this.#settings = settings;
    this.#events = events;
    this.#threads = threads;
    this.#logFilter = settings.worker.logFilter;
    this.hub = new TraceHub(this.#gate, {
      watch: async (id, slot, filter, options) => {
        this.#watches.set(id, { slot, filter, options });
        await this.#all("watch", { id, slot, filter, options });
      },
      unwatch: (id) => {
        this.#watches.delete(id);
        this.#all("unwatch", { id }).catch(() => {});
      },
    });
  }

  /** Real ports by bind key: they differ from the configuration where it says 0. */
  get ports(): Ports {
    return this.#ports;
  }

  get workers(): readonly WorkerHandle[] {
    return [...this.#workers.values()];
  }

  /** `adminPorts`: where the admin API listens. */
  start(adminPorts: readonly number[]): void {
    this.#adminPorts = adminPorts;
    for (let index = 0; index < this.#settings.workers; index++) this.#spawn(index);
    this.#threads.close();
  }

  /**
   * Builds the configuration in every worker and puts it in force in all of them, or in none: rejects with what the first
   * refusing worker said (PortError, WorkerError). A worker that dies meanwhile refuses nothing: its replacement is asked.
   */
  apply(generation: number, configuration: PackedIr): Promise<void> {
    return this.#enqueue(async () => {
      const { ports, release } = await probePorts(
        configuration.frame.binds,
        this.#ports,
        this.#settings.worker.reusePort,
      );
      try {
        // Others replace those that are missing later; somebody has to prove that the configuration can be used.
        if (this.#workers.size === 0) for (const index of this.#missing()) await this.#replace(index);
        await this.#prepareAll(generation, configuration, ports);
      } catch (error) {
        const dead = this.#missing();
        if (dead.length === 0 || this.#stopping) throw error;
        // A second death during the same configuration is taken for its fault.
        for (const index of dead) await this.#replace(index);
        await this.#prepareAll(generation, configuration, ports).catch((again: unknown) => {
          if (again instanceof WorkersDied || this.#missing().length === 0) throw again;
          throw new WorkersDied(`workers have died while they built it: ${asError(again).message}`, { cause: again });
        });
      } finally {
        release();
      }
      this.#current = { generation, configuration };
      this.#ports = ports;
      await this.#all("commit", undefined);
    });
  }

  /** What all workers have counted up to now, those that have died included. */
  metrics(): MetricsSnapshot {
    return mergeSnapshots([this.#retired, ...this.workers.map(({ counters }) => counters.snapshot())]);
  }

  /** What all workers know of each endpoint, by key: counts summed, health and latency averaged over those that used it. */
  async endpoints(): Promise<ReadonlyMap<string, EndpointStats>> {
    const merged = new Map<string, EndpointStats>();
    await this.#ask("endpoints", undefined, (_index, list) => {
      for (const stats of list) {
        const before = merged.get(stats.key);
        merged.set(stats.key, before === undefined ? stats : combineStats(before, stats));
      }
    });
    return merged;
  }

  /** Calls to each backend that all workers have made, by its key. */
  async backendCalls(): Promise<ReadonlyMap<string, number>> {
    const sums = new Map<string, number>();
    await this.#ask("calls", undefined, (_index, calls) => {
      for (const [key, { total }] of calls) sums.set(key, (sums.get(key) ?? 0) + total);
    });
    return sums;
  }

  async tasks(): Promise<Readonly<Record<string, unknown>>> {
    const tasks: Record<string, unknown> = {};
    for (const worker of this.workers) tasks[worker.name] = "did not answer in time";
    await this.#ask("tasks", undefined, (index, list) => {
      tasks[`worker-${index}`] = list;
    });
    return tasks;
  }

  /** The answer of every worker by its name; threads that do not answer in time are left out. */
  async ask<Name extends CommandName>(name: Name, args: Args<Name>): Promise<ReadonlyMap<string, Answer<Name>>> {
    const answers = new Map<string, Answer<Name>>();
    await this.#ask(name, args, (index, value) => answers.set(`worker-${index}`, value));
    return answers;
  }

  async setLogFilter(filter: string): Promise<void> {
    this.#logFilter = filter;
    await this.#all("logFilter", { filter });
  }

  /** Shuts all ports down and waits for open work, at most `deadlineMs`. Returns how many connections had to be cut. */
  async drain(deadlineMs: number): Promise<number> {
    this.#stopping = true;
    const end = performance.now() + deadlineMs;
    for (const step of DRAIN_STEPS) {
      const left = Math.max(0, end - performance.now());
      // A worker that hangs must not keep the others from serving the connections that they hold.
      const patience = step === "finish" ? left : Math.min(left, deadlineMs / 4);
      await this.#ask("drain", { step, deadlineMs }, () => {}, patience);
    }
    let cut = 0;
    await this.#ask("destroy", undefined, (_index, count) => {
      cut += count;
    });
    return cut;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.workers.map((worker) => worker.stop()));
  }

  // ── from the workers ──

  onTrace(id: number, event: string | undefined): void {
    this.hub.deliver(id, event);
  }

  onLog(lines: Uint8Array, dropped: number): void {
    this.#events.onLog(lines, dropped);
  }

  onExport(exporter: string, chunk: Chunk): void {
    this.#events.onExport(exporter, chunk);
  }

  /** What one worker has seen to fail, the others need not try. */
  onEvicted(handle: WorkerHandle, notice: EvictionNotice): void {
    this.#evictions.add(notice, performance.now());
    for (const worker of this.workers) if (worker !== handle) worker.call("evict", { notice }).catch(() => undefined);
  }

  onExit(handle: WorkerHandle, error: Error | undefined): void {
    if (error === undefined || this.#stopping) return;
    const { index } = handle;
    this.#workers.delete(index);
    this.#buckets.releaseLocksOf(index);
    // What the thread was doing has ended with it; what it has counted stays.
    const { requests_in_flight: _, ...counted } = handle.counters.snapshot();
    this.#retired = mergeSnapshots([this.#retired, counted]);
    const orphans = [...this.#watches].filter(([, { slot }]) => this.#gate.claimant(slot) === index).map(([id]) => id);
    this.hub.abandon(orphans, "the worker that served the request has died");
    this.#events.onWorkerDeath(handle.name, error);
    const early = performance.now() - (this.#startedAt.get(index) ?? 0) < EARLY_DEATH_MS;
    void this.#restart(index, early);
  }

  // ── inside ──

  /** Rejects with the first refusal, once every worker has answered and forgotten the configuration. */
  async #prepareAll(generation: number, configuration: PackedIr, ports: Ports): Promise<void> {
    if (this.#workers.size === 0) throw new WorkersDied("no worker is left that could build it");
    const args = preparation(generation, configuration, ports);
    const outcomes = await Promise.allSettled(this.workers.map((worker) => worker.callWithDeadline("prepare", args)));
    const refusal = outcomes.find((outcome) => outcome.status === "rejected");
    if (refusal === undefined) return;
    await this.#all("abort", undefined);
    throw refusal.reason;
  }

  /** Indexes of workers that have died and are not replaced yet. */
  #missing(): number[] {
    return Array.from({ length: this.#settings.workers }, (_, index) => index).filter(
      (index) => !this.#workers.has(index),
    );
  }

  async #restart(index: number, early: boolean): Promise<void> {
    if (early) await delay(RESTART_PAUSE_MS);
    await this.#enqueue(() => this.#replace(index));
  }

  /** Starts a worker in place of one that has died, with the configuration in force. */
  async #replace(index: number): Promise<void> {
    if (this.#stopping || this.#workers.has(index)) return;
    const worker = this.#spawn(index);
    try {
      // Before it serves.
      for (const notice of this.#evictions.inForce(performance.now()))
        await worker.callWithDeadline("evict", { notice });
      if (this.#current !== undefined) {
        await worker.callWithDeadline(
          "prepare",
          preparation(this.#current.generation, this.#current.configuration, this.#ports),
        );
        await worker.callWithDeadline("commit", undefined);
      }
      for (const [id, watch] of this.#watches) await worker.callWithDeadline("watch", { id, ...watch });
    } catch (error) {
      // It has died again, or lives but cannot serve, for example because its port was taken meanwhile: in both cases its
      // exit starts the next attempt.
      worker.fail(asError(error));
    }
  }

  #spawn(index: number): WorkerHandle {
    const options = {
      ...this.#settings.worker,
      logFilter: this.#logFilter,
      index,
      gate: this.#gate.buffer,
      buckets: this.#buckets.memory,
      adminPorts: this.#adminPorts,
    };
    const handle = new WorkerHandle(this.#threads.take(index), options, this);
    this.#workers.set(index, handle);
    this.#startedAt.set(index, performance.now());
    return handle;
  }

  #enqueue<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(task);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  async #all<Name extends CommandName>(name: Name, args: Args<Name>): Promise<void> {
    await Promise.allSettled(this.workers.map((worker) => worker.callWithDeadline(name, args)));
  }

  async #ask<Name extends CommandName>(
    name: Name,
    args: Args<Name>,
    take: (index: number, value: Answer<Name>) => void,
    patienceMs = ANSWER_MS,
  ): Promise<void> {
    const timer = new AbortController();
    const late = delay(patienceMs, undefined, { signal: timer.signal }).catch(() => undefined);
    const asked = this.workers.map(async (worker) => {
      const answer = worker.call(name, args).then(
        (value) => ({ value }),
        () => undefined,
      );
      const got = await Promise.race([answer, late]);
      if (got !== undefined) take(worker.index, got.value);
    });
    await Promise.all(asked);
    timer.abort();
  }
}

/** Workers get nothing that only a dump shows. */
function preparation(generation: number, configuration: PackedIr, ports: Ports): Args<"prepare"> {
  const frame = { ...configuration.frame, targeted: [] };
  return { generation, configuration: { ...configuration, frame }, ports };
}
