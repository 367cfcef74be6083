import { HealthHistory } from "../telemetry/health-history.ts";
import { type EvictionNotice, Evictions, type HealthNotice } from "../upstream/endpoints/endpoint.ts";
import type { NamesNotice } from "../upstream/endpoints/named-endpoints.ts";
import type { WorkerHandle } from "./worker-handle.ts";

/** What is used of a worker. */
type Worker = Pick<WorkerHandle, "index" | "call" | "callWithDeadline">;

/**
 * What all workers share about endpoints, their health and the addresses of names: what one of them finds out, the others learn, and so do
 * their replacements.
 */
export class EndpointHealth {
  /** The last changes of endpoints, by their keys. */
  readonly history = new HealthHistory();
  readonly #evictions = new Evictions();
  /** Results of active health checks, by the key of the endpoint. */
  readonly #healths = new Map<string, HealthNotice>();
  /** Addresses of names, by the key of their endpoints. */
  readonly #names = new Map<string, NamesNotice>();
  /** Index of the worker that makes the active health checks; undefined while there is no worker. */
  #checking: number | undefined;
  /** The live workers, by their index, in the order of their start. */
  readonly #workers: ReadonlyMap<number, Worker>;

  constructor(workers: ReadonlyMap<number, Worker>) {
    this.#workers = workers;
  }

  /** What is in effect now, whichever worker found it. */
  get notices(): {
    readonly evictions: readonly EvictionNotice[];
    readonly healths: readonly HealthNotice[];
    readonly names: readonly NamesNotice[];
  } {
    return {
      evictions: this.#evictions.current(performance.now()),
      healths: [...this.#healths.values()],
      names: [...this.#names.values()],
    };
  }

  /** Outlier detection is per worker, eviction is shared: otherwise each worker would fail requests to learn the same. */
  evicted(by: Worker, notice: EvictionNotice): void {
    const { key, ms, cause } = notice;
    this.history.add(key, { at: Date.now(), state: "evicted", forMs: ms, ...(cause && { cause }) });
    this.#evictions.add(notice, performance.now());
    for (const worker of this.#others(by)) worker.call("evict", { notice }).catch(() => undefined);
  }

  /** The result of an active check. */
  checked(by: Worker, notice: HealthNotice): void {
    const { key, healthy, reason } = notice;
    if (healthy === undefined) this.#healths.delete(key);
    else {
      this.#healths.set(key, notice);
      const at = Date.now();
      this.history.add(key, healthy ? { at, state: "healthy" } : { at, state: "unhealthy", reason });
    }
    for (const worker of this.#others(by)) worker.call("health", { notice }).catch(() => undefined);
  }

  /** The addresses of a name have changed. */
  found(by: Worker, notice: NamesNotice): void {
    if (notice.addresses.length === 0) this.#names.delete(notice.key);
    else this.#names.set(notice.key, notice);
    for (const worker of this.#others(by)) worker.call("names", { notice }).catch(() => undefined);
  }

  /** Tells a new worker all that is in effect. Rejects if the worker ends or does not reply. */
  async tell(worker: Worker): Promise<void> {
    for (const notice of this.#evictions.current(performance.now())) await worker.callWithDeadline("evict", { notice });
    // The map itself: a copy would tell the worker, after a newer result, the one before it.
    for (const notice of this.#healths.values()) await worker.callWithDeadline("health", { notice });
    for (const notice of this.#names.values()) await worker.callWithDeadline("names", { notice });
  }

  /** Chooses the worker that makes the active checks, unless one does: each endpoint would otherwise get as many probes as there are workers. */
  electChecker(): void {
    if (this.#checking !== undefined && this.#workers.has(this.#checking)) return;
    const [worker] = this.#workers.values();
    this.#checking = worker?.index;
    worker?.call("checkHealth", undefined).catch(() => undefined);
  }

  #others(than: Worker): Worker[] {
    return [...this.#workers.values()].filter((worker) => worker !== than);
  }
}
