/**
 * Queries over the objects of a cluster that are computed once and again only when something they read has changed. Translation
 * consists of pure functions of what they read; the graph notes what each one reads. A change marks the results that it may concern;
 * such a result is verified by comparing revisions of its reads, and recomputed only if one differs. A recomputed result that equals the former one keeps its
 * identity, so whatever depends on it is not recomputed, and consumers find changes by comparing references.
 */
import { isDeepStrictEqual } from "node:util";
import { keyOfObject } from "../../kube/keys.ts";
import type { GatewayStatus, KubeObject } from "../../kube/objects.ts";
import type { InputKind, Inputs } from "./inputs.ts";

/** What a query may read. Everything else that it depends on must be constant. */
export interface Read {
  /** `key`: `<namespace>/<name>`, or `<name>` of a cluster-scoped object. */
  get<K extends InputKind>(kind: K, key: string): Inputs[K] | undefined;
  /** All objects of a kind, sorted by key. Any change of the kind makes the reader run again. */
  list<K extends InputKind>(kind: K): readonly Inputs[K][];
  /** The objects that an index files under `value`, sorted by key. */
  find<K extends InputKind>(index: Index<K>, value: string): readonly Inputs[K][];
  /** The result of another query. Queries must not be circular. */
  query<Result, S extends Subject>(query: Query<Result, S>, subject: NoInfer<S>): Result;
}

/** What a query is about: the key of an object, or several texts, such as a Gateway and a bind of it. */
type Subject = string | readonly string[];
export type Pair = readonly [string, string];

/** Files objects of one kind under values. Indexes are compared by identity: make each one once. */
export interface Index<K extends InputKind> {
  readonly kind: K;
  readonly values: (object: Inputs[K]) => readonly string[];
}

export function defineIndex<K extends InputKind>(kind: K, values: Index<K>["values"]): Index<K> {
  return { kind, values };
}

/** A pure function of what it reads and of its subject. Compared by identity: make each one once. */
export interface Query<Result, S extends Subject = string> {
  /** For error messages. */
  readonly name: string;
  readonly run: (read: Read, subject: S) => Result;
}

export function defineQuery<Result, S extends Subject = string>(
  name: string,
  run: Query<Result, S>["run"],
): Query<Result, S> {
  return { name, run };
}

/** Where a read came from, when it last changed, and who reads it. */
abstract class Source {
  /** Most have one reader: a set for each would take more memory than the results. */
  #readers: Memo<unknown> | Set<Memo<unknown>> | undefined;

  /** The revision of the graph in which the value last changed; brings the value up to date first. */
  abstract changedAt(): number;

  addReader(memo: Memo<unknown>): void {
    const readers = this.#readers;
    if (readers === undefined) this.#readers = memo;
    else if (readers instanceof Set) readers.add(memo);
    else if (readers !== memo) this.#readers = new Set([readers, memo]);
  }

  removeReader(memo: Memo<unknown>): void {
    if (this.#readers instanceof Set) this.#readers.delete(memo);
    else if (this.#readers === memo) this.#readers = undefined;
  }

  protected markReaders(): void {
    const readers = this.#readers;
    if (readers instanceof Set) for (const memo of readers) memo.mark();
    else readers?.mark();
  }
}

class Cell<T> extends Source {
  #value: T;
  #changedAt: number;
  constructor(value: T, revision: number) {
    super();
    this.#value = value;
    this.#changedAt = revision;
  }
  get value(): T {
    return this.#value;
  }
  set(value: T, revision: number): void {
    this.#value = value;
    this.#changedAt = revision;
    this.markReaders();
  }
  /** Sets the value without marking it as changed: it was only computed late. */
  fill(value: T): void {
    this.#value = value;
  }
  changedAt(): number {
    return this.#changedAt;
  }
}

interface Filed {
  readonly index: Index<InputKind>;
  /** value → key → object */
  readonly objects: Map<string, Map<string, Inputs[InputKind]>>;
  readonly cells: Map<string, Cell<readonly Inputs[InputKind][] | undefined>>;
}

interface Table {
  readonly objects: Map<string, Inputs[InputKind]>;
  readonly cells: Map<string, Cell<Inputs[InputKind] | undefined>>;
  /** undefined: to be sorted again. */
  readonly all: Cell<readonly Inputs[InputKind][] | undefined>;
  readonly indexes: Filed[];
}

/** The objects of the cluster as far as they are known, and the results of queries over them. */
export class Graph {
  readonly #tables = new Map<InputKind, Table>();
  readonly #filed = new Map<Index<InputKind>, Filed>();
  readonly #memos = new Map<Query<unknown, never>, Map<string, Memo<unknown>>>();
  /** What was asked for from outside since the last change. */
  readonly #asked = new Set<Memo<unknown>>();
  #revision = 1;
  #version = 1;

  /** Increases whenever an object changes in a way that may decide a result. */
  get revision(): number {
    return this.#revision;
  }

  /** Increases with every change of an object other than a heartbeat that its writer sends every few seconds. */
  get version(): number {
    return this.#version;
  }

  /** Another graph with the same objects, and without results. */
  copy(): Graph {
    const copy = new Graph();
    for (const kind of this.kinds) for (const object of this.list(kind)) copy.set(object);
    return copy;
  }

  /** Adds or replaces an object. */
  set(object: Inputs[InputKind]): void {
    this.#change(object.kind, keyOfObject(object), object);
  }

  delete(kind: InputKind, key: string): void {
    this.#change(kind, key, undefined);
  }

  /** Replaces all objects of a kind, or of a kind in a namespace, with `objects`, as after a list. */
  replace<K extends InputKind>(kind: K, objects: readonly Inputs[K][], namespace?: string): void {
    const keys = new Set(objects.map(keyOfObject));
    const scope = namespace === undefined ? "" : `${namespace}/`;
    for (const key of [...this.#table(kind).objects.keys()])
      if (key.startsWith(scope) && !keys.has(key)) this.delete(kind, key);
    for (const object of objects) this.set(object);
  }

  /** Reads outside of queries. */
  get<K extends InputKind>(kind: K, key: string): Inputs[K] | undefined {
    return this.#table(kind).objects.get(key) as Inputs[K] | undefined;
  }

  list<K extends InputKind>(kind: K): readonly Inputs[K][] {
    return this.#all(this.#table(kind)) as unknown as readonly Inputs[K][];
  }

  /** Keys of the objects of a kind that results have looked for one by one, whether they exist or not. */
  askedFor(kind: InputKind): Iterable<string> {
    return this.#table(kind).cells.keys();
  }

  isAskedFor(kind: InputKind, key: string): boolean {
    return this.#table(kind).cells.has(key);
  }

  /** The kinds of which there are objects. */
  get kinds(): readonly InputKind[] {
    return [...this.#tables].filter(([, { objects }]) => objects.size > 0).map(([kind]) => kind);
  }

  count(kind: InputKind): number {
    return this.#tables.get(kind)?.objects.size ?? 0;
  }

  query<Result, S extends Subject>(query: Query<Result, S>, subject: NoInfer<S>): Result {
    const memo = this.#memo(query, subject);
    this.#asked.add(memo);
    return memo.value();
  }

  /**
   * Drops results that were not asked for since the last change, such as those about objects that have gone, so that memory does
   * not grow with them. To be called when everything that matters has been queried.
   */
  collect(): void {
    const read = new Set<Source>();
    const reach = (source: Source): void => {
      if (read.has(source)) return;
      read.add(source);
      if (source instanceof Memo) for (const each of source.reads) reach(each);
    };
    for (const memo of this.#asked) reach(memo);
    for (const [query, memos] of this.#memos) {
      for (const [key, memo] of memos) {
        if (read.has(memo)) continue;
        memo.release();
        memos.delete(key);
      }
      if (memos.size === 0) this.#memos.delete(query);
    }
    const sweep = (cells: Map<string, Source>): void => {
      for (const [key, cell] of cells) if (!read.has(cell)) cells.delete(key);
    };
    for (const { cells, indexes } of this.#tables.values()) {
      sweep(cells);
      for (const index of indexes) sweep(index.cells);
    }
  }

  #change(kind: InputKind, key: string, object: Inputs[InputKind] | undefined): void {
    const table = this.#table(kind);
    const before = table.objects.get(key);
    if (before === undefined && object === undefined) return;
    if (object !== undefined && before !== undefined && isSame(before, object)) {
      if (!isDeepStrictEqual(statusOf(before), statusOf(object))) this.#version++;
      // For writers, which need the newest version.
      table.objects.set(key, object);
      table.cells.get(key)?.fill(object);
      return;
    }
    this.#version++;
    this.#revision++;
    this.#asked.clear();
    if (object === undefined) table.objects.delete(key);
    else table.objects.set(key, object);
    table.cells.get(key)?.set(object, this.#revision);
    table.all.set(undefined, this.#revision);
    for (const filed of table.indexes) this.#file(filed, key, before, object);
  }

  #file({ index, objects, cells }: Filed, key: string, before?: Inputs[InputKind], after?: Inputs[InputKind]): void {
    const touched = new Set<string>();
    if (before !== undefined)
      for (const value of index.values(before)) {
        const filed = objects.get(value);
        filed?.delete(key);
        if (filed?.size === 0) objects.delete(value);
        touched.add(value);
      }
    if (after !== undefined)
      for (const value of index.values(after)) {
        existingOr(objects, value, () => new Map<string, Inputs[InputKind]>()).set(key, after);
        touched.add(value);
      }
    for (const value of touched) cells.get(value)?.set(undefined, this.#revision);
  }

  #table(kind: InputKind): Table {
    let table = this.#tables.get(kind);
    if (table === undefined) {
      table = { objects: new Map(), cells: new Map(), all: new Cell(undefined, this.#revision), indexes: [] };
      this.#tables.set(kind, table);
    }
    return table as Table;
  }

  #all(table: Table): readonly Inputs[InputKind][] {
    let all = table.all.value;
    if (all === undefined) {
      all = sorted(table.objects);
      table.all.fill(all);
    }
    return all;
  }

  #filedBy(index: Index<InputKind>): Filed {
    let filed = this.#filed.get(index);
    if (filed === undefined) {
      const made: Filed = { index, objects: new Map(), cells: new Map() };
      filed = made;
      this.#filed.set(index, made);
      const table = this.#table(index.kind);
      table.indexes.push(made);
      for (const [key, object] of table.objects) this.#file(made, key, undefined, object);
    }
    return filed;
  }

  #memo<Result>(query: Query<Result, never>, subject: Subject): Memo<Result> {
    const memos = existingOr(this.#memos, query, () => new Map<string, Memo<unknown>>());
    const key = typeof subject === "string" ? subject : subject.join("\0");
    return existingOr(memos, key, () => new Memo<unknown>(this, query, subject)) as Memo<Result>;
  }

  /** What one run of a query reads, noted in `reads`. */
  recorder(reads: Set<Source>): Read {
    return {
      get: (kind, key) => {
        const table = this.#table(kind);
        const make = (): Cell<Inputs[InputKind] | undefined> => new Cell(table.objects.get(key), this.#revision);
        const cell = existingOr(table.cells, key, make);
        reads.add(cell);
        return cell.value as never;
      },
      list: (kind) => {
        const table = this.#table(kind);
        reads.add(table.all);
        return this.#all(table) as never;
      },
      find: (index, value) => {
        const filed = this.#filedBy(index as unknown as Index<InputKind>);
        const make = (): Cell<readonly Inputs[InputKind][] | undefined> => new Cell(undefined, this.#revision);
        const cell = existingOr(filed.cells, value, make);
        reads.add(cell);
        const found = cell.value ?? sorted(filed.objects.get(value));
        cell.fill(found);
        return found as never;
      },
      query: (query, subject) => {
        const memo = this.#memo(query, subject);
        reads.add(memo);
        return memo.value();
      },
    };
  }
}

/** The result of a query about one subject. */
class Memo<Result> extends Source {
  readonly #graph: Graph;
  readonly #query: Query<Result, never>;
  readonly #subject: Subject;
  #reads: readonly Source[] = [];
  #result: { readonly value: Result } | undefined;
  #changedAt = 0;
  /** The revision for which the result is known to hold. */
  #verifiedAt = 0;
  #running = false;
  /**
   * Something that it depends on has changed since then. All readers of what is marked are marked too, so results that a change
   * does not concern cost nothing: with 10,000 routes, looking at each of their reads took 10 ms for each change.
   */
  #marked = true;

  constructor(graph: Graph, query: Query<Result, never>, subject: Subject) {
    super();
    this.#graph = graph;
    this.#query = query;
    this.#subject = subject;
  }

  get reads(): readonly Source[] {
    return this.#reads;
  }

  mark(): void {
    if (this.#marked) return;
    this.#marked = true;
    this.markReaders();
  }

  /** No query reads it. */
  release(): void {
    for (const source of this.#reads) source.removeReader(this as Memo<unknown>);
  }

  value(): Result {
    this.#update();
    // Set by the update.
    return (this.#result as { readonly value: Result }).value;
  }

  changedAt(): number {
    this.#update();
    return this.#changedAt;
  }

  #update(): void {
    if (!this.#marked) return;
    const { revision } = this.#graph;
    if (this.#running) throw new Error(`query ${this.#query.name} of ${this.#subject} depends on itself`);
    this.#running = true;
    try {
      if (this.#result === undefined || this.#stale()) this.#run(revision);
      this.#verifiedAt = revision;
      this.#marked = false;
    } finally {
      this.#running = false;
    }
  }

  /** Reads are compared in the order in which they were made: an earlier one may decide whether a later one still applies. */
  #stale(): boolean {
    for (const source of this.#reads) if (source.changedAt() > this.#verifiedAt) return true;
    return false;
  }

  #run(revision: number): void {
    const reads = new Set<Source>();
    const value = this.#query.run(this.#graph.recorder(reads), this.#subject as never);
    for (const source of this.#reads) if (!reads.has(source)) source.removeReader(this as Memo<unknown>);
    for (const source of reads) source.addReader(this as Memo<unknown>);
    // An array takes a third of the memory.
    this.#reads = [...reads];
    if (this.#result !== undefined && isDeepStrictEqual(this.#result.value, value)) return;
    this.#result = { value };
    this.#changedAt = revision;
  }
}

/** Kinds whose status decides nothing but whether it has to be written. */
const STATUS_IS_OUTPUT: ReadonlySet<string> = new Set<InputKind>([
  "HTTPRoute",
  "GRPCRoute",
  "TLSRoute",
  "TCPRoute",
  "UDPRoute",
]);

/** Whether nothing has changed that decides a result: nodes and leaders' ConfigMaps are written every few seconds. */
function isSame(before: KubeObject, after: KubeObject): boolean {
  const [old, now] = [before.metadata.resourceVersion, after.metadata.resourceVersion];
  if (old !== undefined && old === now) return true;
  return isDeepStrictEqual(decisive(before), decisive(after));
}

/**
 * An object without what no result depends on. A status of ours that comes back by the watch would otherwise cost as much as the
 * change that caused it: of a route, and of a Gateway whenever a route attaches to it.
 */
function decisive(object: KubeObject): unknown {
  const { resourceVersion: _version, ...metadata } = object.metadata;
  const { status, ...others } = object as KubeObject & { readonly status?: GatewayStatus };
  if (STATUS_IS_OUTPUT.has(object.kind)) return { ...others, metadata };
  // Whether a Gateway has ever been programmed is known from its conditions.
  if (object.kind === "Gateway") return { ...others, metadata, conditions: status?.conditions };
  return { ...object, metadata };
}

function statusOf(object: KubeObject): unknown {
  return (object as KubeObject & { readonly status?: unknown }).status;
}

function sorted<T>(objects: ReadonlyMap<string, T> | undefined): readonly T[] {
  if (objects === undefined) return [];
  return [...objects].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, object]) => object);
}

function existingOr<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
