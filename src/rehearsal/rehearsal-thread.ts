import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { moduleUrl } from "../base/app-root.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import type { Ports } from "../proxy/data-plane.ts";
import { NO_RESOURCES, type Resources } from "../translation/resources/store.ts";
import type { EndpointStats } from "../upstream/endpoints/endpoints.ts";
import type { Live } from "./explain.ts";
import type { Explained } from "./explanation.ts";
import { BadFacts } from "./facts.ts";
import type { Happened } from "./happened.ts";
import { BadConfiguration, bringsConfiguration, type Question } from "./question.ts";
import type { EndpointNotices, RehearsalSettings } from "./rehearsal.ts";

/** Milliseconds without a question after which the thread ends, with the memory of its compiled configuration. */
const IDLE_MS = 60_000;
/** Milliseconds for one question. */
const LONGEST_MS = 30_000;
/** Questions in progress and waiting. */
const MAX_QUESTIONS = 16;
/** As for the loading thread: V8 keeps the pages of a thread that has ended for a while. */
const YOUNG_GENERATION_MB = 12;

/** A question for the thread. */
export interface Task {
  /** The one in effect, unless the thread has compiled it already or the question brings another one. */
  readonly configuration: PackedIr | undefined;
  /** Documents that the gateway has fetched, for a configuration of the question. */
  readonly resources: Resources;
  readonly ports: Ports;
  readonly notices: EndpointNotices;
  readonly question: Question | Happened;
}

export type ToThread = Task | { readonly stats: readonly EndpointStats[] };

/** What the thread replies; first, if need be, that it wants the state of endpoints. `bad` as BadFacts, `invalid` as BadConfiguration. */
export type Reply =
  | { readonly wanted: readonly string[] }
  | { readonly explained: Explained }
  | { readonly bad: Pick<BadFacts, "message" | "hint" | "about"> }
  | { readonly invalid: string }
  | { readonly failure: string };

/** The gateway whose requests are rehearsed. */
interface RehearsedGateway {
  /** Its configuration in effect, and what its threads know. */
  state(): Pick<Task, "ports" | "notices" | "resources"> & { readonly configuration: PackedIr };
  readonly endpoints: Live["endpoints"];
}

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
  readonly #gateway: RehearsedGateway;
  #worker: Worker | undefined;
  /** The configuration that the thread has compiled. */
  #compiled: PackedIr | undefined;
  #questions = 0;
  #queue: Promise<unknown> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;

  constructor(settings: RehearsalSettings, gateway: RehearsedGateway) {
    this.#settings = settings;
    this.#gateway = gateway;
  }

  /** Rejects with BadFacts for a question that cannot be rehearsed, with BadConfiguration for its configuration, with RehearsalBusy if too many are waiting. */
  async explain(question: Question | Happened): Promise<Explained> {
    if (this.#questions >= MAX_QUESTIONS) throw new RehearsalBusy();
    this.#questions++;
    clearTimeout(this.#idle);
    const result = this.#queue.then(() => this.#ask(question));
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

  async #ask(question: Question | Happened): Promise<Explained> {
    const worker = this.#running();
    const task = this.#taskOf(question);
    const ended = new AbortController();
    const onExit = (): void => ended.abort(new Error("the rehearsal thread has ended"));
    const timer = setTimeout(() => {
      ended.abort(new Error(`the explanation takes longer than ${LONGEST_MS / 1000} s`));
    }, LONGEST_MS);
    worker.once("exit", onExit);
    const ask = async (message: ToThread): Promise<Reply> => {
      const reply = once(worker, "message", { signal: ended.signal });
      worker.postMessage(message);
      return ((await reply) as [Reply])[0];
    };
    try {
      let reply = await ask(task);
      if ("wanted" in reply) reply = await ask({ stats: await this.#gateway.endpoints(reply.wanted) });
      if ("explained" in reply) return reply.explained;
      if ("bad" in reply) throw new BadFacts(reply.bad.message, reply.bad.hint, reply.bad.about);
      if ("invalid" in reply) throw new BadConfiguration(reply.invalid);
      throw new Error("failure" in reply ? reply.failure : "the rehearsal thread asks twice");
    } catch (error) {
      // A thread that did not reply, or failed, is not asked again.
      if (!(error instanceof BadFacts) && !(error instanceof BadConfiguration)) await this.close();
      throw ended.signal.aborted ? ended.signal.reason : error;
    } finally {
      clearTimeout(timer);
      worker.off("exit", onExit);
    }
  }

  #taskOf(question: Question | Happened): Task {
    const { configuration, resources, ...state } = this.#gateway.state();
    if (bringsConfiguration(question)) return { ...state, configuration: undefined, resources, question };
    const isNew = this.#compiled !== configuration;
    this.#compiled = configuration;
    return { ...state, configuration: isNew ? configuration : undefined, resources: NO_RESOURCES, question };
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
