/**
 * Follows the objects of one kind: lists them, then watches from the version of the list. In: pages and events of the API server.
 * Out: a sink that always converges to what the server holds, whatever is lost in between. Used by the controller, one for each
 * kind.
 */
import { setTimeout as delay } from "node:timers/promises";
import { asError } from "../base/errors.ts";
import { fieldsOf } from "../base/fields.ts";
import type { Logger, LogThrottle } from "../base/log.ts";
import { objectKey } from "../base/object-key.ts";
import { Backoff } from "./backoff.ts";
import { type KubeClient, KubeError, resourcePath, statusError } from "./client.ts";
import type { Kind, Objects } from "./objects.ts";
import { RESOURCES } from "./resources.ts";
import { trimMetadata } from "./trim.ts";

/** Where objects go. */
export interface Sink {
  /** These are all objects of the kind, or of the kind in `namespace`. */
  replace<K extends Kind>(kind: K, objects: readonly Objects[K][], namespace?: string): void;
  set(object: Objects[Kind]): void;
  /** `key`: see `objectKey`. */
  delete(kind: Kind, key: string): void;
}

export interface ReflectorOptions<K extends Kind> {
  readonly client: KubeClient;
  readonly kind: K;
  /** Only the objects in this namespace. Default: all namespaces. */
  readonly namespace?: string | undefined;
  /** The server sends only the metadata of objects. */
  readonly metadataOnly?: boolean;
  /** `labelSelector` and `fieldSelector`: the server sends only these objects. */
  readonly selectors?: Readonly<Record<string, string>>;
  /** Without permission to list it, the kind is treated as not installed. */
  readonly optional?: boolean;
  /** Drops unused fields before an object is kept. Metadata is trimmed in any case. */
  readonly trim?: (object: Objects[K]) => Objects[K];
  readonly sink: Sink;
  readonly log: Logger;
  /** Shared by the reflectors of a client, so that an outage of the server causes a single log line. */
  readonly outages?: LogThrottle;
  /** Default: 0.2 s to 10 s. */
  readonly pauses?: Backoff;
  /** Milliseconds between attempts to list a kind that is not installed. Default 5 s. */
  readonly absentPause?: number;
}

/** Types of responses with the metadata of objects; servers that do not know these types send whole objects. */
const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/** Objects in one response: what client-go asks for too. */
const PAGE = "500";
/** Seconds after which the server ends a watch: between this and twice as many. */
const WATCH_SECONDS = 300;
/** Milliseconds after which a watch that the server should have ended counts as dead. */
const OVERDUE_MS = 30_000;
/** Milliseconds that a watch must last to count as a success. */
const LASTING_MS = 1000;

interface List<T> {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items: readonly T[];
}

/** `absent`: the CRD of the kind is not installed, or an optional kind may not be read. `lost`: the known objects may be out of date. */
export type ReflectorState = "starting" | "following" | "absent" | "lost";

export class Reflector<K extends Kind> {
  readonly kind: K;
  /** Resolves when all objects have been listed for the first time, or the kind is absent. */
  readonly synced: Promise<void>;
  readonly #options: ReflectorOptions<K>;
  readonly #pauses: Backoff;
  readonly #markSynced: () => void;
  readonly #path: string;
  #state: ReflectorState = "starting";
  /** `performance.now()` ms of the last list. */
  #listedAt = Number.NEGATIVE_INFINITY;
  /** Version to watch from; undefined: list first. */
  #version: string | undefined;
  /** The error has been logged; repetitions are not. */
  #warned = false;
  /** The last list could not be continued, so the next one is requested without pages. */
  #unpaged = false;

  constructor(options: ReflectorOptions<K>) {
    this.kind = options.kind;
    this.#options = options;
    this.#pauses = options.pauses ?? new Backoff(200, 10_000);
    this.#path = resourcePath(RESOURCES[options.kind], options.namespace);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.synced = promise;
    this.#markSynced = resolve;
  }

  get state(): ReflectorState {
    return this.#state;
  }

  /** Resolves when `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let pause = 0;
      try {
        if (this.#version === undefined) await this.#list(signal);
        else pause = await this.#watch(signal);
      } catch (error) {
        if (signal.aborted) return;
        pause = this.#failed(error);
      }
      if (pause > 0) await delay(pause, undefined, { signal }).catch(() => {});
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, kind, namespace, metadataOnly, selectors, sink, log } = this.#options;
    const objects: Objects[K][] = [];
    let next: string | undefined;
    let version = "";
    do {
      const query = {
        ...selectors,
        ...(!this.#unpaged && { limit: PAGE }),
        ...(next !== undefined && { continue: next }),
      };
      const page = await client.request<List<Objects[K]>>("GET", this.#path, {
        query,
        signal,
        ...(metadataOnly === true && { accept: METADATA_LIST }),
      });
      for (const object of page.items) objects.push(this.#kept(object));
      version = page.metadata.resourceVersion ?? "";
      next = page.metadata.continue;
    } while (next !== undefined && next !== "");
    this.#unpaged = false;
    this.#listedAt = performance.now();
    this.#version = version;
    sink.replace(kind, objects, namespace);
    const again = this.#state === "absent" ? "info" : "debug";
    log.log(again, "listed", { kind, objects: objects.length });
    this.#state = "following";
    this.#warned = false;
    this.#markSynced();
  }

  /** Resolves with the pause before the next watch: 0 after a watch that succeeded. */
  async #watch(signal: AbortSignal): Promise<number> {
    const { client, kind, metadataOnly, selectors, sink } = this.#options;
    const accept = metadataOnly === true ? METADATA : undefined;
    const startedAt = performance.now();
    const seconds = Math.round(WATCH_SECONDS * (1 + Math.random()));
    const query = {
      ...selectors,
      resourceVersion: this.#version ?? "",
      allowWatchBookmarks: "true",
      timeoutSeconds: String(seconds),
    };
    const end = new AbortController();
    const overdue = setTimeout(() => end.abort(), seconds * 1000 + OVERDUE_MS);
    const stop = (): void => end.abort();
    signal.addEventListener("abort", stop);
    let events = 0;
    try {
      for await (const { type, object } of client.watch<Objects[K]>(this.#path, query, end.signal, accept)) {
        if (type === "ERROR") throw errorOf(object);
        events++;
        if (type === "DELETED") sink.delete(kind, objectKey(object.metadata));
        else if (type !== "BOOKMARK") sink.set(this.#kept(object));
        this.#version = object.metadata.resourceVersion ?? this.#version;
        this.#recovered();
      }
    } finally {
      clearTimeout(overdue);
      signal.removeEventListener("abort", stop);
    }
    if (events === 0 && performance.now() - startedAt < LASTING_MS) return this.#pauses.next();
    this.#recovered();
    return 0;
  }

  #recovered(): void {
    this.#pauses.reset();
    if (this.#state === "following") return;
    this.#options.log.debug("following again", { kind: this.kind });
    this.#warned = false;
    this.#state = "following";
  }

  /** Returns the pause before the next attempt. */
  #failed(error: unknown): number {
    const { kind, sink, log, outages, optional = false, absentPause = 5000 } = this.#options;
    const status = error instanceof KubeError ? error.status : undefined;
    if (status === 404 || (optional && status === 403)) {
      const why =
        status === 404
          ? "kind is not installed; waiting for its CRD"
          : "no permission to list and watch an optional kind";
      if (this.#state !== "absent") log.info(why, { kind });
      this.#state = "absent";
      this.#version = undefined;
      sink.replace(kind, [], this.#options.namespace);
      this.#markSynced();
      return absentPause * (0.5 + Math.random());
    }
    if (status === 410) {
      // Normal after long watches and restarts of the API server.
      log.debug("version is too old, listing again", { kind });
      this.#unpaged = this.#version === undefined;
      this.#version = undefined;
      // Normally without a pause. But a server that rejects the version it has just sent must not be asked for full lists in a loop.
      const again = performance.now() - this.#listedAt < LASTING_MS;
      return this.#unpaged || again ? this.#pauses.next() : 0;
    }
    // A watch can resume only after errors that are not about the version, such as 429 and 5xx of a busy server.
    if (!(status === 0 || status === 429 || (status !== undefined && status >= 500))) this.#version = undefined;
    const warn = (): void => log.warn("cannot follow, retrying", { kind, error: asError(error) });
    if (!this.#warned && status === 0 && outages !== undefined) outages.run(warn);
    else if (!this.#warned) warn();
    this.#warned = true;
    if (this.#state === "following") this.#state = "lost";
    return this.#pauses.next();
  }

  /** Lists leave out kind and version of built-in objects, and cluster-scoped ones have no namespace. */
  #kept(object: Objects[K]): Objects[K] {
    const { group, version } = RESOURCES[this.kind];
    const apiVersion = group === "" ? version : `${group}/${version}`;
    const content = this.#options.metadataOnly === true ? undefined : object;
    const whole = { ...content, apiVersion, kind: this.kind, metadata: trimMetadata(object.metadata) } as Objects[K];
    return this.#options.trim?.(whole) ?? whole;
  }
}

/** Of an ERROR event, whose object is a Status. */
function errorOf(status: unknown): KubeError {
  const { code } = fieldsOf(status);
  return statusError(status, typeof code === "number" ? code : 500, "the watch ended with an error");
}
