import { createHash } from "node:crypto";
import { BoundedCache } from "../base/bounded-cache.ts";
import { asError } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { redactUrls } from "../base/redaction.ts";
import { type KubeClient, KubeError } from "./client.ts";
import type { KubeObject } from "./objects.ts";

/** What users see under `kubectl describe` and `kubectl get events`. */
interface EventDraft {
  readonly type: "Normal" | "Warning";
  /** In CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** The API server takes 1024 bytes. */
const MAX_MESSAGE = 1000;
/** Different events whose repetitions are recognized. */
const MAX_KNOWN = 1000;
/** Milliseconds for which a repetition of an event is not written. */
const QUIET_MS = 10_000;

/** Events of one object that are written at once, and milliseconds until another one may be; client-go's limits. */
const BURST = 25;
const REFILL_MS = 300_000;
/** Events waiting to be written; further ones are dropped. The log and the object's status have the same information. */
const MAX_WAITING = 100;

interface Written {
  readonly at: number;
  readonly path: string;
  count: number;
}

/** How many events of an object may be written: `left` at the time `at`. */
interface Budget {
  left: number;
  readonly at: number;
}

/** Writes Events (v1). The same event of the same object is written once and then counted, also across restarts. */
export class EventRecorder {
  readonly #client: KubeClient;
  readonly #source: string;
  readonly #instance: string;
  readonly #log: Logger;
  readonly #known = new BoundedCache<Written>(MAX_KNOWN);
  /** By object. */
  readonly #budgets = new BoundedCache<Budget>(MAX_KNOWN);
  #waiting = 0;

  /** `source` is the component that reports, `instance` its pod. */
  constructor(client: KubeClient, source: string, instance: string, log: Logger) {
    this.#client = client;
    this.#source = source;
    this.#instance = instance;
    this.#log = log;
  }

  /** Never rejects: an event that cannot be written is logged. */
  async record(object: KubeObject, draft: EventDraft): Promise<void> {
    const { name, namespace, uid = "" } = object.metadata;
    const text = redactUrls(draft.message);
    const message = text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text;
    const digest = createHash("sha256").update(JSON.stringify([object.kind, uid, draft.reason, message]));
    const id = digest.digest("hex").slice(0, 16);
    const collection = `/api/v1/namespaces/${namespace === "" ? "default" : namespace}/events`;
    const event = `${name.slice(0, 200)}.${id}`;
    const known = this.#known.get(event);
    if (known !== undefined && performance.now() - known.at < QUIET_MS) return;
    if (this.#waiting >= MAX_WAITING || !this.#spend(`${object.kind} ${namespace}/${name}`)) return;
    const path = `${collection}/${event}`;
    const count = (known?.count ?? 0) + 1;
    this.#known.set(event, { at: performance.now(), path, count });
    this.#waiting++;
    try {
      const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
      const counted = known !== undefined && (await this.#count(path, count, now));
      if (!counted) await this.#create(collection, event, object, { ...draft, message }, now);
    } catch (error) {
      this.#log.warn("an event could not be written", { reason: draft.reason, error: asError(error) });
    } finally {
      this.#waiting--;
    }
  }

  /** False: the object has had too many events lately. */
  #spend(object: string): boolean {
    const now = performance.now();
    const before = this.#budgets.get(object) ?? { left: BURST, at: now };
    const budget = { left: Math.min(BURST, before.left + (now - before.at) / REFILL_MS), at: now };
    const allowed = budget.left >= 1;
    if (allowed) budget.left--;
    this.#budgets.set(object, budget);
    return allowed;
  }

  /** false: the event is gone; the API server keeps events for an hour. */
  async #count(path: string, count: number, now: string): Promise<boolean> {
    const body = { count, lastTimestamp: now };
    try {
      await this.#client.request("PATCH", path, { body, contentType: "application/merge-patch+json" });
      return true;
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return false;
      throw error;
    }
  }

  async #create(collection: string, event: string, object: KubeObject, draft: EventDraft, now: string): Promise<void> {
    const { apiVersion, kind, metadata } = object;
    const namespace = metadata.namespace === "" ? "default" : metadata.namespace;
    const { name, uid, resourceVersion } = metadata;
    const body = {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: event, namespace },
      involvedObject: { apiVersion, kind, namespace: metadata.namespace, name, uid, resourceVersion },
      ...draft,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component: this.#source, host: this.#instance },
      reportingComponent: this.#source,
      reportingInstance: this.#instance,
    };
    try {
      await this.#client.request("POST", collection, { body });
    } catch (error) {
      if (!(error instanceof KubeError && error.reason === "AlreadyExists")) throw error;
      // Written before a restart of ours.
      const path = `${collection}/${event}`;
      const { count = 1 } = await this.#client.request<{ readonly count?: number }>("GET", path);
      await this.#count(path, count + 1, now);
      this.#known.set(event, { at: performance.now(), path, count: count + 1 });
    }
  }
}
