/**
 * A configuration as it is kept and passed between threads. There can be many HTTP routes, services and workloads, and outside the
 * workers they are only passed on and shown in dumps. So they are text in shared memory: the thread that loads them, the main
 * thread and all workers use the same bytes (420 bytes a route, where objects take 1.5 KiB in each thread), and a worker parses
 * only those that it has not compiled before.
 */
import { hash } from "node:crypto";
import type { Path } from "../base/paths.ts";
import type { Service, Workload } from "../upstream/discovery/discovery.ts";
import type { Ir, Route } from "./ir.ts";
import { jsonOf, parseJson } from "./json.ts";

export interface PackedIr {
  /** All but the HTTP routes of listeners and groups, services and workloads. */
  readonly frame: Ir;
  /** For each listener and group, including those without routes. */
  readonly routes: readonly PackedRoutes[];
  readonly addresses: PackedAddresses;
  /** Whether any backend is `internal`. */
  readonly internal: boolean;
}

/** The parts of a configuration that can be large. */
export type PackedParts = Pick<PackedIr, "routes" | "addresses">;

/** Services and workloads, each in the order of the configuration. */
export interface PackedAddresses {
  readonly services: PackedTexts;
  readonly workloads: PackedTexts;
}

/** Routes of one owner, in their order. */
export interface PackedRoutes extends PackedTexts {
  /** A listener's key or `group/<name>`. */
  readonly owner: string;
  /** Where they are written, if that is in a file. */
  readonly places?: PackedPlaces;
}

/**
 * Places in one list of a file, apart from the texts: a route that is inserted before others moves them, and must not change them. The
 * rule of an object stays in the text, because its index is in the key of the route too.
 */
interface PackedPlaces {
  readonly list: Path;
  /** Of each route; `NOT_IN_FILE` if it is a rule of an object. */
  readonly indices: Uint32Array<SharedArrayBuffer>;
}

const NOT_IN_FILE = 0xffffffff;

/** Parts of the IR as JSON, in their order. */
export interface PackedTexts {
  readonly count: number;
  readonly pieces: readonly Piece[];
  /** Two numbers for each part: the index of its piece, and its index there. */
  readonly order: Uint32Array;
  /** The same for lists of equal parts. */
  readonly digest: string;
}

/** Some parts, in any order; a piece never changes, so later configurations can have it too. */
interface Piece {
  /** UTF-8; the texts follow each other without separators. */
  readonly texts: Uint8Array<SharedArrayBuffer>;
  /** Where each text begins, and where the last one ends. */
  readonly offsets: Uint32Array<SharedArrayBuffer>;
  /** DIGEST_BYTES for each: parts with one digest are equal. */
  readonly digests: Uint8Array<SharedArrayBuffer>;
}

/** 128 bits of SHA-256: enough that two different routes never share a digest. */
const DIGEST_BYTES = 16;

/** A part as text, with its digest. */
export interface PackedText {
  /** JSON in UTF-8, as `jsonOf` writes it. */
  readonly text: Uint8Array;
  /** `digestOf` the text. */
  readonly digest: Uint8Array;
}

/** Parts that are in `previous` already stay where they are in shared memory. */
export function packIr(ir: Ir, previous?: PackedParts): PackedIr {
  const { services, workloads } = ir;
  const before = new Map(previous?.routes.map((packed) => [packed.owner, packed]));
  const packRoutes = (owner: string, routes: readonly Route[]): PackedRoutes => ({
    owner,
    ...packOnce(routes.map(withoutPlace), before.get(owner)),
    ...placesOf(routes),
  });
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
      ...listeners.map(({ key, routes }) => packRoutes(key, routes)),
      ...ir.routeGroups.map(({ name, routes }) => packRoutes(groupOwner(name), routes)),
    ],
    addresses: {
      services: packOnce(services, previous?.addresses.services),
      workloads: packOnce(workloads, previous?.addresses.workloads),
    },
    internal,
  };
}

/** The configuration with its routes; parses all of them, so only for callers that look at all of them once. */
export function unpackIr({ frame, routes, addresses: { services, workloads } }: PackedIr): Ir {
  const byOwner = new Map(routes.map((packed) => [packed.owner, packed]));
  const routesOf = (owner: string): Route[] => {
    const packed = byOwner.get(owner);
    return packed === undefined ? [] : allOf<Route>(packed).map((route, i) => ({ ...route, ...placeAt(packed, i) }));
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

/** Without its place in a file, which `placeAt` returns. */
export function routeAt(packed: PackedRoutes, index: number): Route {
  return parseText(packed, index) as Route;
}

function withoutPlace(route: Route): Route {
  const { origin, ...others } = route;
  return origin?.object === undefined ? others : route;
}

/** All routes of an owner that are in a file are in one list there. */
function placesOf(routes: readonly Route[]): Pick<PackedRoutes, "places"> {
  const paths = routes.map(({ origin }) => (origin?.object === undefined ? origin?.path : undefined));
  const list = paths.find((path) => path !== undefined)?.slice(0, -1);
  if (list === undefined) return {};
  const indices = new Uint32Array(new SharedArrayBuffer(4 * routes.length));
  indices.set(paths.map((path) => Number(path?.at(-1) ?? NOT_IN_FILE)));
  return { places: { list, indices } };
}

/** Where a route is written, if that is in a file. */
export function placeAt({ places }: PackedRoutes, index: number): Pick<Route, "origin"> {
  const at = places?.indices[index] ?? NOT_IN_FILE;
  return places === undefined || at === NOT_IN_FILE ? {} : { origin: { path: [...places.list, at] } };
}

export function parseText({ pieces, order }: PackedTexts, at: number): unknown {
  const { texts, offsets } = pieceAt(pieces, order[2 * at]);
  const index = order[2 * at + 1] ?? 0;
  const start = offsets[index] ?? 0;
  return parseJson(Buffer.from(texts.buffer, start, (offsets[index + 1] ?? start) - start).toString("utf8"));
}

/** Text that two parts share only if they are equal. */
export function digestAt({ pieces, order }: PackedTexts, at: number): string {
  const { digests } = pieceAt(pieces, order[2 * at]);
  return Buffer.from(digests.buffer, (order[2 * at + 1] ?? 0) * DIGEST_BYTES, DIGEST_BYTES).toString("latin1");
}

function pieceAt(pieces: readonly Piece[], index = 0): Piece {
  const piece = pieces[index];
  if (piece === undefined) throw new RangeError(`no piece has the index ${index}: there are ${pieces.length}`);
  return piece;
}

/** The owner of a route group's routes. */
export function groupOwner(name: string): string {
  return `group/${name}`;
}

/** DIGEST_BYTES that two texts share only if they are equal. */
export function digestOf(text: string | Uint8Array): Buffer {
  return hash("sha256", text, "buffer").subarray(0, DIGEST_BYTES);
}

/** Pieces that a list may have before they are put together: each consists of three buffers that threads pass on. */
const MAX_PIECES = 64;

interface LivePiece {
  readonly piece: Piece;
  readonly count: number;
  /** Parts in it that are still in use. */
  live: number;
}

interface Place {
  readonly piece: LivePiece;
  readonly index: number;
}

/**
 * Packs a list again and again. Parts that were there before stay where they are in shared memory, and new ones get a new piece:
 * otherwise a change of one route among thousands would copy the text of all, and shared memory is freed late, because that takes a
 * garbage collection in every thread (3,000 routes: 1.3 MiB for each change).
 */
export class TextPacker {
  /** By the digest of the part. */
  #places = new Map<string, Place>();
  #pieces: LivePiece[] = [];

  /** Continues from `previous`, which another thread may have packed. */
  constructor(previous?: PackedTexts) {
    if (previous === undefined) return;
    this.#pieces = previous.pieces.map((piece) => ({ piece, count: piece.offsets.length - 1, live: 0 }));
    for (let at = 0; at < previous.count; at++) {
      const piece = this.#pieces[previous.order[2 * at] ?? 0];
      if (piece === undefined) continue;
      this.#places.set(digestAt(previous, at), { piece, index: previous.order[2 * at + 1] ?? 0 });
    }
  }

  pack(parts: readonly PackedText[]): PackedTexts {
    const added = this.#keep(parts);
    const kept = this.#places.size;
    const total = this.#pieces.reduce((sum, { count }) => sum + count, 0);
    if (total > 2 * kept || this.#pieces.length >= MAX_PIECES) {
      this.#places.clear();
      this.#pieces = [];
      this.#add(parts);
    } else this.#add(added);
    const indexes = new Map(this.#pieces.map((piece, index) => [piece, index]));
    const order = new Uint32Array(2 * parts.length);
    for (const [at, part] of parts.entries()) {
      const place = this.#places.get(keyOf(part));
      if (place === undefined) continue;
      order[2 * at] = indexes.get(place.piece) ?? 0;
      order[2 * at + 1] = place.index;
    }
    const digest = digestOf(Buffer.concat(parts.map((part) => part.digest))).toString("base64url");
    return { count: parts.length, pieces: this.#pieces.map(({ piece }) => piece), order, digest };
  }

  /** Forgets what is not in the list; returns what has no place yet. */
  #keep(parts: readonly PackedText[]): readonly PackedText[] {
    const added: PackedText[] = [];
    const places = new Map<string, Place>();
    for (const piece of this.#pieces) piece.live = 0;
    for (const part of parts) {
      const key = keyOf(part);
      const place = this.#places.get(key);
      if (place === undefined) added.push(part);
      else {
        place.piece.live++;
        places.set(key, place);
      }
    }
    this.#places = places;
    this.#pieces = this.#pieces.filter(({ live }) => live > 0);
    return added;
  }

  #add(parts: readonly PackedText[]): void {
    if (parts.length === 0) return;
    const piece = { piece: pieceOf(parts), count: parts.length, live: parts.length };
    this.#pieces.push(piece);
    for (const [index, part] of parts.entries()) this.#places.set(keyOf(part), { piece, index });
  }
}

/** As `digestAt`. */
function keyOf({ digest }: PackedText): string {
  return Buffer.from(digest.buffer, digest.byteOffset, DIGEST_BYTES).toString("latin1");
}

function pieceOf(parts: readonly PackedText[]): Piece {
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
  return { texts, offsets, digests };
}

function packOnce(parts: readonly (Route | Service | Workload)[], previous: PackedTexts | undefined): PackedTexts {
  return new TextPacker(previous).pack(
    parts.map((part) => {
      const text = Buffer.from(jsonOf(part));
      return { text, digest: digestOf(text) };
    }),
  );
}
