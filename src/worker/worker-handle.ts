import type { Worker } from "node:worker_threads";
import { RejectedParts } from "../ir/rejected-parts.ts";
import { CounterMemory } from "../telemetry/metrics.ts";
import type { Chunk } from "../telemetry/otlp/messages.ts";
import { FollowCounters } from "../trace/follow-counters.ts";
import type { FollowedBatch } from "../trace/follower.ts";
import type { PostedEvent } from "../trace/tracer.ts";
import type { EvictionNotice, HealthNotice } from "../upstream/endpoints/endpoint.ts";
import type { NamesNotice } from "../upstream/endpoints/named-endpoints.ts";
import { LogRing } from "./log-ring.ts";
import type { Args, CommandName, Notice, Reply, Request, WorkerOptions } from "./messages.ts";

/** A command failed in the worker, or the worker ended before it replied. */
export class WorkerError extends Error {}

/**
 * A thread that has not replied for this long is considered hung and is ended. The longest command is `prepare`, which compiles a
 * configuration; the limit is far above that, because ending a worker that is merely slow cuts its connections.
 */
const REPLY_TIMEOUT_MS = 60_000;

/** The caller of a command that has no reply yet. */
interface PendingCommand {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** What a worker sends besides replies, and its end. */
export interface WorkerEvents {
  /** An event of trace session `id` as JSON; undefined: the trace has ended. */
  onTrace(id: number, event: PostedEvent | undefined): void;
  /** Events of requests that follower `id` follows. */
  onFollowed(handle: WorkerHandle, id: number, batch: FollowedBatch): void;
  /** The worker has evicted an endpoint. */
  onEvicted(handle: WorkerHandle, notice: EvictionNotice): void;
  /** An active health check of the worker has changed the state of an endpoint. */
  onHealth(handle: WorkerHandle, notice: HealthNotice): void;
  onNames(handle: WorkerHandle, notice: NamesNotice): void;
  /** A request needs a newer version of a document. */
  onDocumentWanted(url: string): void;
  /**
   * Log lines as UTF-8, each with its line break, valid during the call only. `dropped`: lines that the `LogRing` had no room for
   * since the last call.
   */
  onLog(lines: Uint8Array, dropped: number, apart: boolean): void;
  /** Spans or log records for the exporter with this `exporterKey`. */
  onExport(exporter: string, chunk: Chunk): void;
  /** The thread has ended, because of `error`; undefined after `stop`. No event of this worker follows. */
  onExit(handle: WorkerHandle, error: Error | undefined): void;
}

/**
 * The main thread's side of one worker thread: sends commands, matches replies with calls, and reports how the thread ended.
 * A handle is not reused; the supervisor makes a new one for the replacement.
 */
export class WorkerHandle {
  readonly index: number;
  readonly name: string;
  /** The thread's counters, in shared memory that outlives it. */
  readonly counters = new CounterMemory();
  /** What followers have got from the thread, in shared memory too. */
  readonly followed = new FollowCounters();
  /** Number of the configuration that the thread serves; undefined: none yet. */
  generation: number | undefined;
  readonly #worker: Worker;
  readonly #logRing = new LogRing();
  /** For the access log, if it goes apart. */
  readonly #accessRing: LogRing | undefined;
  readonly #pending = new Map<number, PendingCommand>();
  #calls = 0;
  #stopped = false;
  /** The uncaught error of the thread, or the reason of `fail`; `exit` follows and carries neither. */
  #failure: Error | undefined;
  /** Set once the thread has ended: a message to it would be lost without an error. */
  #ended: Error | undefined;

  /** `thread` is a new thread; it starts work with the options, its first message. */
  constructor(
    thread: Worker,
    options: Omit<WorkerOptions, "logRing" | "accessRing" | "followCounters">,
    events: WorkerEvents,
  ) {
    this.index = options.index;
    this.name = `worker-${options.index}`;
    this.#worker = thread;
    this.#accessRing = options.accessLog.apart ? new LogRing() : undefined;
    const own = {
      logRing: this.#logRing.memory,
      accessRing: this.#accessRing?.memory,
      followCounters: this.followed.memory,
    };
    thread.postMessage({ ...options, ...own } satisfies WorkerOptions);
    this.#worker.on("message", (notice: Notice) => this.#receive(notice, events));
    this.#worker.on("error", (error) => {
      this.#failure = error;
    });
    this.#worker.on("exit", (code) => {
      const error = this.#failure ?? new WorkerError(`${this.name} exited with code ${code}`);
      this.#ended = error;
      for (const { reject } of this.#pending.values()) reject(error);
      this.#pending.clear();
      events.onExit(this, this.#stopped ? undefined : error);
    });
  }

  /** Node's id of the thread, for diagnostics. */
  get threadId(): number {
    return this.#worker.threadId;
  }

  /** Sends a command. Resolves with its reply; rejects when it fails or the thread ends first. Waits without limit. */
  call<Name extends CommandName>(name: Name, args: Args<Name>): Promise<Reply<Name>> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const call = this.#calls++;
    return new Promise((resolve, reject) => {
      this.#pending.set(call, { resolve: resolve as (value: unknown) => void, reject });
      this.#worker.postMessage({ call, name, args } satisfies Request<Name>);
    });
  }

  /**
   * Sends a command that every worker must run, such as `prepare`. Ends a thread that does not reply within 60 s, as if it had
   * died: otherwise one hanging worker would block every later reload.
   */
  async callWithDeadline<Name extends CommandName>(name: Name, args: Args<Name>): Promise<void> {
    const onTimeout = (): void =>
      this.fail(new WorkerError(`${this.name} did not reply within ${REPLY_TIMEOUT_MS / 1000} s`));
    const timer = setTimeout(onTimeout, REPLY_TIMEOUT_MS);
    try {
      await this.call(name, args);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends a thread that cannot serve. It counts as dead, with `error` as the reason unless it has failed already. */
  fail(error: Error): void {
    this.#failure ??= error;
    void this.#worker.terminate();
  }

  /** Ends the thread on purpose: `onExit` reports no error and the supervisor does not replace it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#worker.terminate();
  }

  #receive(notice: Notice, events: WorkerEvents): void {
    switch (notice.type) {
      case "trace":
        events.onTrace(notice.id, notice.event);
        return;
      case "followed":
        this.followed.received(notice.slot, notice.batch.text.length);
        events.onFollowed(this, notice.id, notice.batch);
        return;
      case "series":
        this.counters.add(notice.notice);
        return;
      case "evicted":
        events.onEvicted(this, notice.notice);
        return;
      case "health":
        events.onHealth(this, notice.notice);
        return;
      case "names":
        events.onNames(this, notice.notice);
        return;
      case "documentWanted":
        events.onDocumentWanted(notice.url);
        return;
      case "log":
      case "accessLog": {
        const ring = (notice.type === "accessLog" ? this.#accessRing : undefined) ?? this.#logRing;
        events.onLog(ring.read(notice.part), ring.takeDropped(), ring === this.#accessRing);
        ring.free(notice.part);
        return;
      }
      case "export":
        events.onExport(notice.exporter, notice.chunk);
        return;
      default: {
        const pending = this.#pending.get(notice.call);
        this.#pending.delete(notice.call);
        if (notice.type === "reply") pending?.resolve(notice.value);
        else if (notice.parts !== undefined) pending?.reject(new RejectedParts(notice.parts));
        else pending?.reject(new WorkerError(notice.message));
      }
    }
  }
}
