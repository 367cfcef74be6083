import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { isJson, isSame, type Json } from "./merge.ts";

/** An object of any kind, as the API server holds it. */
export type Stored = Json & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Json & { readonly name: string; readonly resourceVersion: string };
};

export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly collection: string;
  readonly version: number;
  readonly object: Stored;
}

/** An error of the API server, as a Status object. */
export class Refused extends Error {
  readonly code: number;
  readonly reason: string;
  /** Of the object that it is about. */
  readonly objectName: string | undefined;
  constructor(code: number, reason: string, message: string, objectName?: string) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.objectName = objectName;
  }
}

/**
 * Objects with versions and the history of their changes. A collection is named as in paths, without the namespace:
 * `gateway.networking.k8s.io/v1/gateways`, `v1/secrets`. Keys are `<namespace>/<name>` or `<name>`.
 */
export class Store {
  readonly #collections = new Map<string, Map<string, Stored>>();
  readonly #history: Change[] = [];
  readonly #listeners = new Set<(change: Change) => void>();
  #version = 1000;
  #compacted = 0;

  get version(): number {
    return this.#version;
  }

  /** Changes up to this version have been dropped: a watch from an earlier one must list again. */
  get compacted(): number {
    return this.#compacted;
  }

  compact(): void {
    this.#compacted = this.#version;
    this.#history.length = 0;
  }

  get(collection: string, key: string): Stored | undefined {
    return this.#collections.get(collection)?.get(key);
  }

  /** Sorted by key. */
  list(collection: string): [key: string, object: Stored][] {
    return [...(this.#collections.get(collection) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  since(version: number): readonly Change[] {
    return this.#history.filter((change) => change.version > version);
  }

  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Creates or replaces; an object that stays the same keeps its version. The server sets uid, times, generation and version. */
  put(collection: string, key: string, object: Json): Stored {
    const before = this.get(collection, key);
    const metadata = isJson(object.metadata) ? object.metadata : {};
    const { apiVersion, kind } = object;
    if (typeof apiVersion !== "string" || typeof kind !== "string" || typeof metadata.name !== "string")
      throw new Refused(400, "BadRequest", "apiVersion, kind and metadata.name are required");
    if (before !== undefined && isSame(before, { ...object, metadata: { ...before.metadata, ...metadata } }))
      return before;
    this.#version++;
    const stored: Stored = {
      ...object,
      apiVersion,
      kind,
      metadata: {
        ...metadata,
        name: metadata.name,
        uid: before?.metadata.uid ?? metadata.uid ?? randomUUID(),
        creationTimestamp:
          before?.metadata.creationTimestamp ??
          metadata.creationTimestamp ??
          new Date().toISOString().replace(/\.\d+Z$/, "Z"),
        generation: generation(before, object),
        resourceVersion: String(this.#version),
      },
    };
    let objects = this.#collections.get(collection);
    if (objects === undefined) {
      objects = new Map();
      this.#collections.set(collection, objects);
    }
    objects.set(key, stored);
    this.#note(before === undefined ? "ADDED" : "MODIFIED", collection, stored);
    return stored;
  }

  delete(collection: string, key: string): Stored | undefined {
    const before = this.get(collection, key);
    if (before === undefined) return undefined;
    this.#version++;
    this.#collections.get(collection)?.delete(key);
    const object = { ...before, metadata: { ...before.metadata, resourceVersion: String(this.#version) } };
    this.#note("DELETED", collection, object);
    return before;
  }

  #note(type: Change["type"], collection: string, object: Stored): void {
    const change = { type, collection, version: this.#version, object };
    this.#history.push(change);
    for (const listener of this.#listeners) listener(change);
  }
}

/** Counts changes of everything but metadata and status, as for custom resources. */
function generation(before: Stored | undefined, object: Json): number {
  const metadata = isJson(object.metadata) ? object.metadata : {};
  if (before === undefined) return typeof metadata.generation === "number" ? metadata.generation : 1;
  const spec = ({ metadata: _metadata, status: _status, ...rest }: Json): Json => rest;
  const former = Number(before.metadata.generation);
  return isDeepStrictEqual(spec(before), spec(object)) ? former : former + 1;
}
