/**
 * A configuration as it is kept and passed between threads. HTTP routes can be many, and only two things are done with them
 * outside of the workers: they are handed on, and shown in a dump. So they are text in shared memory: the thread that loads
 * them, the main thread and all workers use the same bytes (420 bytes a route, where objects take 1.5 KiB in each thread),
 * and a worker turns only those into objects that it has not compiled before.
 */
import { hash } from "node:crypto";
import type { Ir, Route } from "./ir.ts";
import { jsonOf, parseJson } from "./json.ts";

export interface PackedIr {
  /** All but the HTTP routes of listeners and groups. */
  readonly frame: Ir;
  /** Of each listener and group, those without routes included. */
  readonly routes: readonly PackedRoutes[];
  /** Digest of what besides a route itself decides what it is compiled to: services, workloads, functions. */
  readonly surroundings: string;
  /** Whether any backend is `internal`. */
  readonly internal: boolean;
}

/** Routes of one owner as JSON, in their order. */
export interface PackedRoutes {
  /** A listener's key or `group/<name>`. */
  readonly owner: string;
  readonly count: number;
  /** UTF-8; the texts follow each other without separators. */
  readonly texts: Uint8Array<SharedArrayBuffer>;
  /** Where each text begins, and where the last one ends. */
  readonly offsets: Uint32Array<SharedArrayBuffer>;
  /** DIGEST_BYTES for each route: routes with one digest are equal. */
  readonly digests: Uint8Array<SharedArrayBuffer>;
}

/** 128 bits of SHA-256: enough that two different routes have never the same. */
const DIGEST_BYTES = 16;

/** A route as text, with its digest. */
export interface PackedRoute {
  /** JSON in UTF-8, as `jsonOf` writes it. */
  readonly text: Uint8Array;
  /** Of the text: `digestOf`. */
  readonly digest: Uint8Array;
}

export function packIr(ir: Ir): PackedIr {
  const { services, workloads, customFunctions } = ir;
  const listeners = ir.binds.flatMap((bind) => bind.listeners);
  const internal = [...listeners, ...ir.routeGroups].some((owner) =>
    owner.routes.some((route) => route.backends.some((backend) => backend.target.type === "internal")),
  );
  return {
    frame: {
      ...ir,
      binds: ir.binds.map((bind) => ({
        ...bind,
        listeners: bind.listeners.map((listener) => ({ ...listener, routes: [] })),
      })),
      routeGroups: ir.routeGroups.map((group) => ({ ...group, routes: [] })),
    },
    routes: [
      ...listeners.map((listener) => packRoutes(listener.key, listener.routes.map(packed))),
      ...ir.routeGroups.map((group) => packRoutes(groupOwner(group.name), group.routes.map(packed))),
    ],
    surroundings: hash("sha256", JSON.stringify([services, workloads, customFunctions])),
    internal,
  };
}

/** The configuration with its routes; makes all of them, so only for what looks at all of them once. */
export function unpackIr({ frame, routes }: PackedIr): Ir {
  const byOwner = new Map(routes.map((packed) => [packed.owner, packed]));
  const routesOf = (owner: string): Route[] => {
    const packed = byOwner.get(owner);
    return Array.from({ length: packed?.count ?? 0 }, (_, i) => routeAt(packed as PackedRoutes, i));
  };
  return {
    ...frame,
    binds: frame.binds.map((bind) => ({
      ...bind,
      listeners: bind.listeners.map((listener) => ({ ...listener, routes: routesOf(listener.key) })),
    })),
    routeGroups: frame.routeGroups.map((group) => ({ ...group, routes: routesOf(groupOwner(group.name)) })),
  };
}

export function routeAt({ texts, offsets }: PackedRoutes, index: number): Route {
  const start = offsets[index] ?? 0;
  const text = Buffer.from(texts.buffer, start, (offsets[index + 1] ?? start) - start).toString("utf8");
  return parseJson(text) as Route;
}

/** Text that two routes share only if they are equal. */
export function digestAt({ digests }: PackedRoutes, index: number): string {
  return Buffer.from(digests.buffer, index * DIGEST_BYTES, DIGEST_BYTES).toString("latin1");
}

/** The owner of a route group's routes. */
export function groupOwner(name: string): string {
  return `group/${name}`;
}

/** DIGEST_BYTES that two texts share only if they are equal. */
export function digestOf(text: string | Uint8Array): Buffer {
  return hash("sha256", text, "buffer").subarray(0, DIGEST_BYTES);
}

export function packRoutes(owner: string, routes: readonly PackedRoute[]): PackedRoutes {
  const offsets = new Uint32Array(new SharedArrayBuffer(4 * (routes.length + 1)));
  let end = 0;
  for (const [i, { text }] of routes.entries()) {
    end += text.length;
    offsets[i + 1] = end;
  }
  const texts = new Uint8Array(new SharedArrayBuffer(end));
  const digests = new Uint8Array(new SharedArrayBuffer(routes.length * DIGEST_BYTES));
  for (const [i, { text, digest }] of routes.entries()) {
    texts.set(text, offsets[i] ?? 0);
    digests.set(digest, i * DIGEST_BYTES);
  }
  return { owner, count: routes.length, texts, offsets, digests };
}

function packed(route: Route): PackedRoute {
  const text = Buffer.from(jsonOf(route));
  return { text, digest: digestOf(text) };
}
