import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { OwnSockets } from "../../src/base/own-sockets.ts";
import { loadConfig } from "../../src/config/load.ts";
import { type PackedIr, packIr } from "../../src/ir/packed-ir.ts";
import { NO_LOOKUP_RULES } from "../../src/net/egress.ts";
import { Supervisor, type SupervisorSettings } from "../../src/worker/supervisor.ts";
import { rawClient } from "../e2e/trace/support.ts";
// Threads run from the package, if there is one.
import "./programs.ts";

const DEADLINE_MS = 30_000;
const POLL_MS = 20;

export const WORKER: SupervisorSettings["worker"] = {
  overload: { maxLag: 0, heapShare: 0 },
  expressions: { perRequest: 1000, routeShare: 0.1 },
  pool: { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 },
  lookupFamily: "All",
  sensitiveHeaders: [],
  sessionKey: new Uint8Array(32),
  env: {},
  locality: {},
  logFilter: "error",
  logFormat: "json",
  accessLog: { format: "json", reasons: "full", apart: false },
  egress: { provenance: "operator", lookupRules: NO_LOOKUP_RULES, internalSocket: "" },
  metricLabels: {},
  customFunctions: "",
  reusePort: process.platform === "linux",
};

/** A configuration as workers get it. */
export function irOf(config: object, env: Readonly<Record<string, string>> = {}): PackedIr {
  const loaded = loadConfig({ kind: "text", text: JSON.stringify(config), name: "test" }, env);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded));
  return packIr(loaded.ir);
}

/** A configuration of one port that responds with `body`. */
export function answering(body: string): PackedIr {
  const policies = { directResponse: { status: 200, body } };
  return irOf({ binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes: [{ name: "d", policies }] }] }] });
}

/** Workers under supervision in the test's own process, which can end them as a fault would. */
export class TestSupervisor {
  readonly supervisor: Supervisor;
  readonly deaths: string[] = [];
  /** All log lines of the workers. */
  log = "";
  readonly #threads = new Map<number, Worker>();
  readonly #onDeath: (() => void)[] = [];

  /** `settings`: others than those of most tests. */
  constructor(workers: number, settings: Pick<SupervisorSettings, "recorder"> = {}) {
    // Node emits this event for every thread; the supervisor itself does not expose them.
    process.on("worker", this.#remember);
    this.supervisor = new Supervisor(
      { workers, own: new OwnSockets(OwnSockets.memoryFor(workers + 1)), worker: WORKER, ...settings },
      {
        onLog: (lines) => {
          this.log += Buffer.from(lines).toString();
        },
        onDocumentWanted: () => {},
        onExport: () => {},
        onWorkerDeath: (name) => {
          this.deaths.push(name);
          for (const resolve of this.#onDeath.splice(0)) resolve();
        },
      },
    );
    this.supervisor.start();
  }

  /** The port of the first bind. */
  get port(): number {
    return Object.values(this.supervisor.ports)[0] ?? 0;
  }

  /** Resolves after `more` further deaths of workers. */
  async death(more = 1): Promise<void> {
    const enough = this.deaths.length + more;
    while (this.deaths.length < enough) await new Promise<void>((resolve) => this.#onDeath.push(resolve));
  }

  /** Resolves when Node has emitted the event of threads that were just started. */
  known(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** The thread of a live worker. */
  thread(name: string): Worker {
    const handle = this.supervisor.workers.find((worker) => worker.name === name);
    const thread = this.#threads.get(handle?.threadId ?? -1);
    if (thread === undefined) throw new Error(`${name} is not running`);
    return thread;
  }

  /** Ends a thread as a fault would, without the supervisor. */
  async end(name: string): Promise<void> {
    await this.thread(name).terminate();
  }

  /** A keep-alive connection to this worker, after one request. Waits until the worker runs. */
  async clientOf(name: string): Promise<Socket> {
    const deadline = Date.now() + DEADLINE_MS;
    while (Date.now() < deadline) {
      // Polling without a pause would slow down the start of the new worker.
      if (!this.supervisor.workers.some((worker) => worker.name === name)) await delay(POLL_MS);
      const socket = await rawClient(this.port, "GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n").catch(() => undefined);
      if (socket === undefined) {
        await delay(POLL_MS);
        continue;
      }
      // If the worker dies there is no response.
      await Promise.race([once(socket, "data"), once(socket, "close")]).catch(() => undefined);
      const task = JSON.stringify((await this.supervisor.tasks())[name] ?? "");
      if (!socket.destroyed && task.includes(`:${socket.localPort}"`)) return socket;
      socket.destroy();
    }
    throw new Error(`${name} accepts no connection`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.off("worker", this.#remember);
    await this.supervisor.stop();
  }

  readonly #remember = (thread: Worker): void => {
    this.#threads.set(thread.threadId, thread);
  };
}
