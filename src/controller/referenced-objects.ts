/**
 * Secrets and ConfigMaps: clusters have many, some of them large, and Gateways need few. In: the metadata of all, from reflectors, and the
 * keys that results have looked for, from the graph. Out: to the graph, each object that was looked for, complete and in its newest
 * version; of other objects only the version is kept. The keys are compared after each run, so a reference and its object may appear in any
 * order.
 */
import { asError } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { objectKey } from "../base/object-key.ts";
import { type KubeClient, KubeError, resourcePath } from "../kube/client.ts";
import { keyOfObject, refOf } from "../kube/keys.ts";
import type { Kind, Objects, Secret } from "../kube/objects.ts";
import type { Sink } from "../kube/reflector.ts";
import { RESOURCES } from "../kube/resources.ts";
import { trimMetadata } from "../kube/trim.ts";
import { WorkQueue } from "./base/work-queue.ts";
import type { Graph } from "./graph/graph.ts";
import { keptFor } from "./kept-certificates.ts";

const KINDS = ["Secret", "ConfigMap"] as const;
type ReferencedKind = (typeof KINDS)[number];

/** Concurrent requests. */
const PARALLEL = 8;
const RESTS = { failure: { first: 200, longest: 30_000 } };
/** Milliseconds for which results wait for objects that they have looked for; then those count as missing. */
const PATIENCE_MS = 2000;

interface ReferencedObjectsOptions {
  readonly client: KubeClient;
  readonly graph: Graph;
  /** Where complete objects of a kind go. */
  readonly sinks: Readonly<Record<ReferencedKind, Pick<Sink, "set" | "delete">>>;
  /** Called when an object was waited for and did not arrive. */
  readonly changed: () => void;
  readonly log: Logger;
}

export class ReferencedObjects implements Sink {
  readonly #options: ReferencedObjectsOptions;
  readonly #queue: WorkQueue;
  /** The newest known version of each object, by `<kind>/<key>`. */
  readonly #versions = new Map<string, string>();
  /** The version in the graph. */
  readonly #held = new Map<string, string>();
  /** Copies of former certificates, which are not referenced by other objects. */
  readonly #copies = new Set<string>();
  /** `performance.now()` ms since when an object is waited for. */
  readonly #awaited = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ReferencedObjectsOptions) {
    this.#options = options;
    const work = (id: string, signal: AbortSignal): Promise<boolean> => this.#fetch(id, signal);
    this.#queue = new WorkQueue(PARALLEL, RESTS, work, (object, error, failures) =>
      options.log.warn("cannot read an object, retrying", { object, failures, error: asError(error) }),
    );
  }

  replace<K extends Kind>(kind: K, objects: readonly Objects[K][], namespace?: string): void {
    const scope = namespace === undefined ? `${kind}/` : `${kind}/${namespace}/`;
    const listed = new Set(objects.map((object) => `${kind}/${keyOfObject(object)}`));
    for (const id of [...this.#versions.keys()]) if (id.startsWith(scope) && !listed.has(id)) this.#forget(id);
    for (const object of objects) this.#note(object);
    this.update();
  }

  set(object: Objects[Kind]): void {
    const id = this.#note(object);
    if (this.#isWanted(id)) this.#refresh(id);
  }

  delete(kind: Kind, key: string): void {
    this.#forget(`${kind}/${key}`);
  }

  /** Call this when results may have looked for other objects. False: some of these have not arrived yet. */
  update(): boolean {
    const { graph } = this.#options;
    let complete = true;
    for (const kind of KINDS)
      for (const key of graph.askedFor(kind)) if (!this.#refresh(`${kind}/${key}`)) complete = false;
    for (const id of this.#copies) if (!this.#refresh(id)) complete = false;
    for (const id of [...this.#held.keys()]) if (!this.#isWanted(id)) this.#drop(id);
    return complete;
  }

  /** Resolves when no request is in progress. */
  close(): Promise<void> {
    clearTimeout(this.#timer);
    return this.#queue.close();
  }

  #note(object: Objects[Kind]): string {
    const id = `${object.kind}/${keyOfObject(object)}`;
    this.#versions.set(id, object.metadata.resourceVersion ?? "");
    if (object.kind === "Secret" && keptFor(object as Secret) !== undefined) this.#copies.add(id);
    else this.#copies.delete(id);
    return id;
  }

  #isWanted(id: string): boolean {
    const { kind, key } = parts(id);
    return this.#copies.has(id) || this.#options.graph.isAskedFor(kind, key);
  }

  /** Fetches an object if its version is not the newest. False: the caller has to wait for it. */
  #refresh(id: string): boolean {
    const version = this.#versions.get(id);
    const held = this.#held.get(id);
    if (version === held) return true;
    this.#queue.add(id);
    // The former content stays in use meanwhile.
    if (held !== undefined) return true;
    const now = performance.now();
    const since = this.#awaited.get(id) ?? now;
    this.#awaited.set(id, since);
    if (now - since >= PATIENCE_MS) return true;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#options.changed();
    }, PATIENCE_MS);
    return false;
  }

  async #fetch(id: string, signal: AbortSignal): Promise<boolean> {
    const { client, sinks } = this.#options;
    const { kind, namespace, name } = parts(id);
    const version = this.#versions.get(id);
    if (version === undefined || version === this.#held.get(id) || !this.#isWanted(id)) return false;
    let object: Objects[ReferencedKind];
    try {
      object = await client.request("GET", resourcePath(RESOURCES[kind], namespace, name), { signal });
    } catch (error) {
      if (!(error instanceof KubeError) || error.status !== 404) throw error;
      this.#forget(id);
      return true;
    }
    // It was deleted meanwhile.
    if (!this.#versions.has(id)) return false;
    const current = object.metadata.resourceVersion ?? "";
    // An event of the watch may be in flight; if it has an earlier version, the object is fetched once more.
    if (this.#versions.get(id) === version) this.#versions.set(id, current);
    this.#held.set(id, current);
    this.#awaited.delete(id);
    sinks[kind].set({ ...object, apiVersion: "v1", kind, metadata: trimMetadata(object.metadata) } as Objects[Kind]);
    if (this.#versions.get(id) !== current) this.#queue.add(id);
    return true;
  }

  #forget(id: string): void {
    this.#versions.delete(id);
    this.#copies.delete(id);
    this.#awaited.delete(id);
    this.#drop(id);
  }

  #drop(id: string): void {
    const { kind, key } = parts(id);
    if (this.#held.delete(id)) this.#options.sinks[kind].delete(kind, key);
  }
}

function parts(id: string) {
  const ref = refOf<ReferencedKind>(id);
  return { ...ref, key: objectKey(ref) };
}
