/**
 * A configuration as it is kept and passed between threads. HTTP routes, services and workloads can be many, and only two things are done with them
 * outside of the workers: they are handed on, and shown in a dump. So they are text in shared memory: the thread that loads
 * them, the main thread and all workers use the same bytes (420 bytes a route, where objects take 1.5 KiB in each thread),
 * and a worker turns only those into objects that it has not compiled before.
 */
import { hash } from "node:crypto";
import type { Service, Workload } from "../upstream/discovery.ts";
import type { Ir, Route } from "./ir.ts";
import { jsonOf, parseJson } from "./json.ts";

export interface PackedIr {
  /** All but the HTTP routes of listeners and groups, services and workloads. */
  readonly frame: Ir;
  /** Of each listener and group, those without routes included. */
  readonly routes: readonly PackedRoutes[];
  readonly addresses: PackedAddresses;
  /** Whether any backend is `internal`. */
  readonly internal: boolean;
}

/** Services and workloads, each in the order of the configuration. */
export interface PackedAddresses {
  readonly services: PackedTexts;
  readonly workloads: PackedTexts;
}

/** Routes of one owner, in their order. */
export interface PackedRoutes extends PackedTexts {
  /** A listener's key or `group/<name>`. */
  readonly owner: string;
}

/** Parts of the IR as JSON. */
export interface PackedTexts {
  readonly count: number;
  /** UTF-8; the texts follow each other without separators. */
  readonly texts: Uint8Array<SharedArrayBuffer>;
  /** Where each text begins, and where the last one ends. */
  readonly offsets: Uint32Array<SharedArrayBuffer>;
  /** DIGEST_BYTES for each: parts with one digest are equal. */
  readonly digests: Uint8Array<SharedArrayBuffer>;
}

/** 128 bits of SHA-256: enough that two different routes have never the same. */
const DIGEST_BYTES = 16;

/** A part as text, with its digest. */
export interface PackedText {
  /** JSON in UTF-8, as `jsonOf` writes it. */
  readonly text: Uint8Array;
  /** Of the text: `digestOf`. */
  readonly digest: Uint8Array;
}

export function packIr(ir: Ir): PackedIr {
  const { services, workloads } = ir;
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
      services: [],
      workloads: [],
    },
    routes: [
      ...listeners.map(({ key, routes }) => ({ owner: key, ...packTexts(routes.map(packed)) })),
      ...ir.routeGroups.map(({ name, routes }) => ({ owner: groupOwner(name), ...packTexts(routes.map(packed)) })),
    ],
    addresses: { services: packTexts(services.map(packed)), workloads: packTexts(workloads.map(packed)) },
    internal,
  };
}

/** The configuration with its routes; makes all of them, so only for what looks at all of them once. */
export function unpackIr({ frame, routes, addresses: { services, workloads } }: PackedIr): Ir {
  const byOwner = new Map(routes.map((packed) => [packed.owner, packed]));
  const routesOf = (owner: string): Route[] => {
    const packed = byOwner.get(owner);
    return packed === undefined ? [] : allOf<Route>(packed);
  };
  return {
    ...frame,
    binds: frame.binds.map((bind) => ({
      ...bind,
      listeners: bind.listeners.map((listener) => ({ ...listener, routes: routesOf(listener.key) })),
    })),
    routeGroups: frame.routeGroups.map((group) => ({ ...group, routes: routesOf(groupOwner(group.name)) })),
    services: allOf<Service>(services),
    workloads: allOf<Workload>(workloads),
  };
}

function allOf<Part>(packed: PackedTexts): Part[] {
  return Array.from({ length: packed.count }, (_, i) => parseText(packed, i) as Part);
}

export function routeAt(packed: PackedRoutes, index: number): Route {
  return parseText(packed, index) as Route;
}

export function parseText({ texts, offsets }: PackedTexts, index: number): unknown {
  const start = offsets[index] ?? 0;
  return parseJson(Buffer.from(texts.buffer, start, (offsets[index + 1] ?? start) - start).toString("utf8"));
}

/** Text that two parts share only if they are equal. */
export function digestAt({ digests }: PackedTexts, index: number): string {
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

export function packTexts(parts: readonly PackedText[]): PackedTexts {
  const offsets = new Uint32Array(new SharedArrayBuffer(4 * (parts.length + 1)));
  let end = 0;
  for (const [i, { text }] of parts.entries()) {
    end += text.length;
    offsets[i + 1] = end;
  }
  const texts = new Uint8Array(new SharedArrayBuffer(end));
  const digests = new Uint8Array(new SharedArrayBuffer(parts.length * DIGEST_BYTES));
  for (const [i, { text, digest }] of parts.entries()) {
    texts.set(text, offsets[i] ?? 0);
    digests.set(digest, i * DIGEST_BYTES);
  }
  return { count: parts.length, texts, offsets, digests };
}

function packed(part: Route | Service | Workload): PackedText {
  const text = Buffer.from(jsonOf(part));
  return { text, digest: digestOf(text) };
}
