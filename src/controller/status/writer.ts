import { isDeepStrictEqual } from "node:util";
import { asError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { type KubeClient, KubeError, resourcePath } from "../../kube/client.ts";
import type { Kind, KubeObject } from "../../kube/objects.ts";
import { RESOURCES } from "../../kube/resources.ts";
import { isOlder } from "../base/resource-version.ts";
import { WorkQueue } from "../base/work-queue.ts";
import type { DesiredStatus } from "./desired.ts";
import { type StatusChange, statusChange } from "./merge-status.ts";

/** Requests at once. The client limits how many there are in a second. */
const PARALLEL = 8;
const RESTS = {
  failure: { first: 250, longest: 30_000 },
  // A Gateway counts its routes: while many are attached one after the other, its status is written a few times, not each time.
  change: { first: 100, longest: 2000, quiet: 5000 },
};
/** How often a status is merged again into an object that others have changed meanwhile, before it rests. */
const CONFLICTS = 3;
/** Failures in a row after which one is worth a line in the log: others are normal while an API server restarts. */
const NOTABLE_FAILURES = 3;

interface StatusWriterOptions {
  readonly client: KubeClient;
  readonly controllerName: string;
  /** The object as it is known. */
  readonly live: (kind: Kind, key: string) => KubeObject | undefined;
  readonly log: Logger;
  /** Milliseconds; default `Date.now`. */
  readonly now?: () => number;
}

interface Written {
  readonly change: StatusChange;
  readonly object: KubeObject;
}

/**
 * Makes the statuses of objects what they should be. In: all desired statuses, whenever one of them or an object may have changed.
 * Out: one request for each status that differs, and none for others, so it does not matter who wrote it. To be run by the leader.
 */
export class StatusWriter {
  /** Since the start. `conflicts`: writes that failed because another writer was faster. */
  readonly counters = { writes: 0, failures: 0, conflicts: 0 };
  readonly #options: StatusWriterOptions;
  readonly #queue: WorkQueue;
  #desired: ReadonlyMap<string, DesiredStatus> = new Map();
  /** The objects that statuses were last compared with. */
  #compared: ReadonlyMap<string, KubeObject | undefined> = new Map();
  /** What the API server has returned for a write, until the object is known in that version. */
  readonly #written = new Map<string, Written>();

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    this.#queue = new WorkQueue(
      PARALLEL,
      RESTS,
      (id, signal) => this.#write(id, signal),
      (id, error, failures) => this.#failed(id, error, failures),
    );
  }

  /** Takes the statuses of all objects of ours. */
  update(statuses: readonly DesiredStatus[]): void {
    const desired = new Map<string, DesiredStatus>();
    const compared = new Map<string, KubeObject | undefined>();
    for (const status of statuses) {
      const id = `${status.kind}/${status.key}`;
      const live = this.#options.live(status.kind, status.key);
      desired.set(id, status);
      compared.set(id, live);
    }
    const [desiredBefore, comparedBefore] = [this.#desired, this.#compared];
    this.#desired = desired;
    this.#compared = compared;
    for (const id of this.#written.keys()) if (!desired.has(id)) this.#written.delete(id);
    for (const [id, status] of desired) {
      const changed = desiredBefore.get(id) !== status;
      if (!changed && comparedBefore.get(id) === compared.get(id)) continue;
      if (this.#pending(id, status) === undefined) continue;
      // A change may mend what made a write fail, such as a value that the API server rejects.
      if (changed) this.#queue.retry(id);
      else this.#queue.add(id);
    }
  }

  /** Stops writing. Resolves when no request is in progress. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  /** What has to be written, and the object that it was compared with. */
  #pending(id: string, status: DesiredStatus, fresh?: KubeObject): Written | undefined {
    const { live, controllerName, now = Date.now } = this.#options;
    const known = fresh ?? live(status.kind, status.key);
    const written = this.#written.get(id);
    // Our own write comes back by the watch a little later.
    const object =
      written !== undefined && known !== undefined && isOlder(known, written.object) ? written.object : known;
    if (object === undefined) return undefined;
    const time = `${new Date(now()).toISOString().slice(0, 19)}Z`;
    const change = statusChange(status, object, controllerName, time);
    if (change === undefined) {
      if (object === known) this.#written.delete(id);
      return undefined;
    }
    // Not repeated if the API server stores something else than it was sent, e.g. because its CRDs are older.
    const same = written?.object.metadata.resourceVersion === object.metadata.resourceVersion;
    return same && written !== undefined && equalButTimes(written.change, change) ? undefined : { change, object };
  }

  /** Resolves to whether there was something to write. */
  async #write(id: string, signal: AbortSignal): Promise<boolean> {
    const { client } = this.#options;
    let fresh: KubeObject | undefined;
    for (let attempt = 0; ; attempt++) {
      const desired = this.#desired.get(id);
      const pending = desired && this.#pending(id, desired, fresh);
      if (desired === undefined || pending === undefined) return attempt > 0;
      const { change, object } = pending;
      const { metadata } = object;
      const path = resourcePath(RESOURCES[desired.kind], metadata.namespace, metadata.name);
      const { resourceVersion } = metadata;
      const body = { ...(change.shared && { metadata: { resourceVersion } }), status: change.status };
      try {
        this.counters.writes++;
        const options = { body, contentType: "application/merge-patch+json", signal };
        const written = await client.request<KubeObject>("PATCH", `${path}/status`, options);
        if (this.#desired.has(id)) this.#written.set(id, { change, object: statusOnly(written) });
        return true;
      } catch (error) {
        if (!(error instanceof KubeError)) throw error;
        // The object has gone; so will its desired status.
        if (error.status === 404) return false;
        if (error.status !== 409 || attempt === CONFLICTS) throw error;
        this.counters.conflicts++;
        fresh = await client.request<KubeObject>("GET", path, { signal });
      }
    }
  }

  #failed(id: string, error: unknown, failures: number): void {
    this.counters.failures++;
    const { log } = this.#options;
    const fields = { object: id, failures, error: asError(error) };
    if (failures === NOTABLE_FAILURES) log.warn("cannot write a status, retrying", fields);
    else log.debug("cannot write a status, trying again", fields);
  }
}

/** The part of a response that is compared. Keeping the rest would double the memory of objects. */
function statusOnly(object: KubeObject): KubeObject {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, resourceVersion } = metadata;
  const { status } = object as { readonly status?: unknown };
  const kept = {
    apiVersion,
    kind,
    metadata: { name, namespace, ...(resourceVersion !== undefined && { resourceVersion }) },
  };
  return { ...kept, status } as KubeObject;
}

function equalButTimes(a: StatusChange, b: StatusChange): boolean {
  const withoutTimes = (change: StatusChange): unknown =>
    JSON.parse(JSON.stringify(change, (key, value) => (key === "lastTransitionTime" ? undefined : value)));
  return isDeepStrictEqual(withoutTimes(a), withoutTimes(b));
}
