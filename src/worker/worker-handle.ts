import type { Worker } from "node:worker_threads";
import { CounterMemory } from "../telemetry/metrics.ts";
import type { Chunk } from "../telemetry/otlp/messages.ts";
import type { EvictionNotice } from "../upstream/endpoint.ts";
import { LogWindow } from "./batches.ts";
import type { Answer, Args, CommandName, Notice, Request, WorkerOptions } from "./messages.ts";

/** A command that a worker refused or did not live to answer. `code` is the system's error code, such as EADDRINUSE. */
export class WorkerError extends Error {
  readonly code: string | undefined;
  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/** Milliseconds after which a thread without an answer counts as hanging. The longest command compiles a configuration. */
const ANSWER_MS = 60_000;

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export interface WorkerEvents {
  onTrace(id: number, event: string | undefined): void;
  onEvicted(handle: WorkerHandle, notice: EvictionNotice): void;
  /** UTF-8 with line breaks. `dropped`: how many lines there was no room for since the last call. */
  onLog(lines: Uint8Array, dropped: number): void;
  onExport(exporter: string, chunk: Chunk): void;
  /** The thread has ended; `error` is what ended it, undefined after `stop`. */
  onExit(handle: WorkerHandle, error: Error | undefined): void;
}

/** The main thread's side of one worker. */
export class WorkerHandle {
  readonly index: number;
  readonly name: string;
  /** What the thread has counted; stays when it has died. */
  readonly counters = new CounterMemory();
  readonly #worker: Worker;
  readonly #logWindow = new LogWindow();
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
  #stopped = false;
  #failure: Error | undefined;
  /** Why the thread answers nothing any more: it has ended. */
  #ended: Error | undefined;

  /** `thread` has just been started, and has nothing to do yet. */
  constructor(thread: Worker, options: Omit<WorkerOptions, "logWindow">, events: WorkerEvents) {
    this.index = options.index;
    this.name = `worker-${options.index}`;
    this.#worker = thread;
    thread.postMessage({ ...options, logWindow: this.#logWindow.memory } satisfies WorkerOptions);
    this.#worker.on("message", (notice: Notice) => this.#receive(notice, events));
    this.#worker.on("error", (error) => {
      this.#failure = error;
    });
    this.#worker.on("exit", (code) => {
      const error = this.#failure ?? new WorkerError(`${this.name} exited with code ${code}`);
      this.#ended = error;
      for (const waiting of this.#waiting.values()) waiting.reject(error);
      this.#waiting.clear();
      events.onExit(this, this.#stopped ? undefined : error);
    });
  }

  get threadId(): number {
    return this.#worker.threadId;
  }

  /** Sends a command; resolves with its answer, rejects with a WorkerError, also if the thread has ended already. */
  call<Name extends CommandName>(name: Name, args: Args<Name>): Promise<Answer<Name>> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const call = this.#calls++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve: resolve as (value: unknown) => void, reject });
      this.#worker.postMessage({ call, name, args } satisfies Request<Name>);
    });
  }

  /** As `call`, for commands that all workers wait for: a thread that hangs is ended as if it had died. */
  async callWithDeadline<Name extends CommandName>(name: Name, args: Args<Name>): Promise<void> {
    const hangs = (): void => this.fail(new WorkerError(`${this.name} has not answered for ${ANSWER_MS / 1000} s`));
    const timer = setTimeout(hangs, ANSWER_MS);
    try {
      await this.call(name, args);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends a thread that is of no use; it counts as dead of `error`. */
  fail(error: Error): void {
    this.#failure ??= error;
    void this.#worker.terminate();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#worker.terminate();
  }

  #receive(notice: Notice, events: WorkerEvents): void {
    switch (notice.type) {
      case "trace":
        events.onTrace(notice.id, notice.event);
        return;
      case "series":
        this.counters.add(notice.notice);
        return;
      case "evicted":
        events.onEvicted(this, notice.notice);
        return;
      case "log":
        events.onLog(notice.lines, this.#logWindow.arrived(notice.lines));
        return;
      case "export":
        events.onExport(notice.exporter, notice.chunk);
        return;
      default: {
        const waiting = this.#waiting.get(notice.call);
        this.#waiting.delete(notice.call);
        if (notice.type === "answer") waiting?.resolve(notice.value);
        else waiting?.reject(new WorkerError(notice.message, notice.code));
      }
    }
  }
}
