import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { moduleUrl } from "../base/app-root.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import type { Ports } from "../proxy/data-plane.ts";
import type { ExplainedOutcome } from "./explanation.ts";
import { BadFacts } from "./facts.ts";
import type { Question } from "./question.ts";
import type { RehearsalSettings } from "./rehearsal.ts";

/** Milliseconds without a question after which the thread ends, with the memory of its compiled configuration. */
const IDLE_MS = 60_000;
/** Milliseconds for one question. */
const LONGEST_MS = 30_000;
/** Questions in progress and waiting. */
const MAX_QUESTIONS = 16;
/** As for the loading thread: V8 keeps the pages of a thread that has ended for a while. */
const YOUNG_GENERATION_MB = 12;

/** A question for the thread; with the configuration unless it is the one of the question before. */
export interface Task {
  readonly configuration: PackedIr | undefined;
  readonly ports: Ports;
  readonly question: Question;
}

/** What the thread replies. `bad`: as BadFacts. */
export type Rehearsed =
  | { readonly outcomes: readonly ExplainedOutcome[] }
  | { readonly bad: Pick<BadFacts, "message" | "hint"> }
  | { readonly failure: string };

/** Too many questions are waiting. */
export class RehearsalBusy extends Error {
  constructor() {
    super(`${MAX_QUESTIONS} explanations are in progress or waiting; try again`);
  }
}

/**
 * Rehearses requests in a thread of its own, so that neither the caller nor workers wait for it. The thread starts with the first
 * question, compiles the packed configuration, which is in shared memory, and ends when it has been idle for a minute. Questions are
 * taken one at a time.
 */
export class RehearsalThread {
  readonly #settings: RehearsalSettings;
  #worker: Worker | undefined;
  /** The configuration that the thread has compiled. */
  #compiled: PackedIr | undefined;
  #questions = 0;
  #queue: Promise<unknown> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;

  constructor(settings: RehearsalSettings) {
    this.#settings = settings;
  }

  /** Rejects with BadFacts for a question that cannot be rehearsed, with RehearsalBusy if too many are waiting. */
  async outcomes(configuration: PackedIr, ports: Ports, question: Question): Promise<readonly ExplainedOutcome[]> {
    if (this.#questions >= MAX_QUESTIONS) throw new RehearsalBusy();
    this.#questions++;
    clearTimeout(this.#idle);
    const result = this.#queue.then(() => this.#ask(configuration, { ports, question }));
    this.#queue = result.catch(() => undefined);
    try {
      return await result;
    } finally {
      this.#questions--;
      if (this.#questions === 0) this.#idle = setTimeout(() => void this.close(), IDLE_MS).unref();
    }
  }

  /** Ends the thread; the next question starts another one. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    this.#compiled = undefined;
    await worker?.terminate();
  }

  async #ask(configuration: PackedIr, task: Omit<Task, "configuration">): Promise<readonly ExplainedOutcome[]> {
    const worker = this.#running();
    const isNew = this.#compiled !== configuration;
    this.#compiled = configuration;
    const ended = new AbortController();
    const onExit = (): void => ended.abort(new Error("the rehearsal thread has ended"));
    const timer = setTimeout(() => {
      ended.abort(new Error(`the explanation takes longer than ${LONGEST_MS / 1000} s`));
    }, LONGEST_MS);
    worker.once("exit", onExit);
    try {
      const reply = once(worker, "message", { signal: ended.signal });
      worker.postMessage({ configuration: isNew ? configuration : undefined, ...task } satisfies Task);
      const [rehearsed] = (await reply) as [Rehearsed];
      if ("outcomes" in rehearsed) return rehearsed.outcomes;
      if ("bad" in rehearsed) throw new BadFacts(rehearsed.bad.message, rehearsed.bad.hint);
      throw new Error(rehearsed.failure);
    } catch (error) {
      // A thread that did not reply, or failed, is not asked again.
      if (!(error instanceof BadFacts)) await this.close();
      throw ended.signal.aborted ? ended.signal.reason : error;
    } finally {
      clearTimeout(timer);
      worker.off("exit", onExit);
    }
  }

  #running(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = new Worker(moduleUrl("rehearsal/rehearsal-worker"), {
      workerData: this.#settings,
      name: "rehearsal",
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    // The exit that follows is what callers see.
    worker.on("error", () => undefined).unref();
    worker.once("exit", () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#compiled = undefined;
    });
    this.#worker = worker;
    return worker;
  }
}
