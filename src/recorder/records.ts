/** The readers' side of the recorder: finds records in the memories of all workers. Every value is a copy. */
import type { ErrorCode, Reason } from "../base/errors.ts";
import { jsonOf } from "../base/fields.ts";
import { addressOfBytes } from "../base/ip-address.ts";
import { formatHostPort } from "../base/listen-address.ts";
import type { Activation, Condition, RecordParts, RequestParts, ResponseParts } from "../cel/index.ts";
import { Exemplars, type TimedRequest } from "../telemetry/exemplars.ts";
import { parseTraceparent } from "../telemetry/tracing/traceparent.ts";
import { isCalled } from "../trace/route-names.ts";
import { errorOf, reasonOf } from "./codes.ts";
import { FLAGS, type Kind, kindOf, NO_GRPC_STATUS, type SlotFields, TEXTS } from "./layout.ts";
import type { Area, RecorderMemory } from "./memory.ts";
import { NameReader } from "./names.ts";
import { type Decider, isFailure, type PlaceLabels, placeLabels, recordId } from "./recorder.ts";
import { SlotReader } from "./slots.ts";

/** Milliseconds within which the record of a finished request is written, even if its thread is interrupted. */
const WRITTEN_AFTER = 250;
/** Clients may send one id with many requests. */
const MOST_OF_ONE_ID = 100;
/** Characters of a trace id. */
const TRACE_ID = 32;

/** A record as JSON. What there is none of, or what is not known, is absent. */
export interface RequestRecord {
  /** Of the request, as in the access log. */
  readonly id?: string;
  /** Of the replica, where those of several are shown. */
  readonly pod?: string;
  /** ISO 8601, when the request began. */
  readonly time: string;
  /** Absent: a request. */
  readonly kind?: Kind;
  readonly worker: number;
  /** Among the records of the worker, from 1 on. */
  readonly number: number;
  readonly generation: number;
  readonly method?: string;
  readonly host?: string;
  /** Without query. */
  readonly path: string;
  /** The path or the id was longer than a record has room for. */
  readonly cut?: true;
  /** The client spoke TLS. */
  readonly tls?: true;
  /** Of HTTP, such as `HTTP/1.1`; of a connection or session `tcp`, `tls`, `udp` or `http`. */
  readonly version?: string;
  /** 0: no response was sent. */
  readonly status: number;
  readonly reason: Reason;
  /** Of the error that the gateway has responded with. */
  readonly error?: ErrorCode;
  readonly grpcStatus?: number;
  /** Milliseconds. */
  readonly duration: number;
  /** Milliseconds from the start to the last attempt, and from there to the head of its response. */
  readonly beforeCall?: number;
  readonly untilAnswer?: number;
  /** Bytes of the bodies. */
  readonly received: number;
  readonly sent: number;
  readonly bind?: string;
  readonly gateway?: string;
  readonly listener?: string;
  readonly route?: string;
  readonly routeRule?: string;
  readonly backend?: string;
  readonly endpoint?: string;
  readonly attempts?: number;
  readonly traceId?: string;
  /** `<ip>:<port>`, if `config.recorder.clientAddress` is set. */
  readonly client?: string;
  /** What of the configuration ended it. */
  readonly decider?: Decider;
  /** It took four times as long as requests of its route usually do. */
  readonly slow?: true;
  /** It is kept longer than others. */
  readonly kept?: true;
  /** It failed or was slow, but is not kept: `leftOut` of an earlier record counts it. */
  readonly notKept?: true;
  /** Later ones of the same route and for the same reason that were not kept. */
  readonly leftOut?: number;
}

/** Which records to find. */
export interface RecordQuery {
  /** Milliseconds since the epoch: requests that ended later. */
  readonly since: number;
  /** `<namespace>/<name>` or only the name. */
  readonly route?: string | undefined;
  /** Only what failed or was rejected, or only what was slow, or both. */
  readonly errors?: boolean;
  readonly slow?: boolean;
  readonly where?: Condition | undefined;
  readonly limit: number;
}

export interface RecordAnswer {
  /** The newest first. */
  readonly records: readonly RequestRecord[];
  /** How many were found, of which `records` are the newest. */
  readonly found: number;
  /** How many requests ended in the time in question, as far as records reach back: also those without a record. */
  readonly requests: number;
  /** ISO 8601: all requests that ended later have records; undefined: there are none yet. */
  readonly completeSince?: string;
  /** ISO 8601: the oldest record. */
  readonly keptSince?: string;
  /** ISO 8601: the answer covers all requests that ended before this time. Pass it as `since` to get the following ones. */
  readonly until: string;
}

/** Searches the records of all workers. */
export class Records {
  readonly #workers: readonly WorkerRecords[];

  constructor(memories: readonly RecorderMemory[]) {
    this.#workers = memories.map((memory, worker) => new WorkerRecords(memory, worker));
  }

  find(query: RecordQuery): RecordAnswer {
    const until = untilNow();
    const newest = new Newest(query.limit);
    const { since } = query;
    const mayMatch = ({ startedAt, duration }: SlotFields): boolean => startedAt + duration >= since;
    const reach = this.#scan(since, mayMatch, (record) => {
      if (matches(record, query)) newest.add(record);
    });
    return { records: newest.all(), found: newest.found, ...reach, until };
  }

  /** The records with this request id, trace id or `traceparent`, or `<worker>-<number>`. */
  withId(text: string): RecordAnswer {
    const until = untilNow();
    const newest = new Newest(MOST_OF_ONE_ID);
    const reach = this.#scanId(text, (record) => newest.add(record));
    return { records: newest.all(), found: newest.found, ...reach, until };
  }

  /** What `where` reads of the newest record that `withId` finds; undefined without one. */
  partsOf(text: string): Activation | undefined {
    let endedAt = Number.NEGATIVE_INFINITY;
    let parts: Activation | undefined;
    this.#scanId(text, (found) => {
      if (found.endedAt < endedAt) return;
      const { request, response, backend, record } = found;
      endedAt = found.endedAt;
      parts = { request, response, backend, record };
    });
    return parts;
  }

  /** The newest kept request of each bucket of the histograms. */
  exemplars(): Exemplars {
    const exemplars = new Exemplars();
    for (const worker of this.#workers)
      worker.eachKept((record) => {
        if (record.isRequest) exemplars.add(record);
      });
    return exemplars;
  }

  #scanId(text: string, each: (record: RecordView) => void): Omit<RecordAnswer, "records" | "found" | "until"> {
    const id = parseTraceparent(text)?.traceId ?? text;
    const key = /^(\d+)-(\d+)$/.exec(id);
    const mayMatch = key === null ? mayHaveId(id) : ({ number }: SlotFields): boolean => number === Number(key[2]);
    return this.#scan(0, mayMatch, (record) => {
      if (key === null ? record.hasId(id) : record.isNumber(Number(key[1]), Number(key[2]))) each(record);
    });
  }

  #scan(
    since: number,
    mayMatch: Filter,
    each: (record: RecordView) => void,
  ): Omit<RecordAnswer, "records" | "found" | "until"> {
    let requests = 0;
    let complete = 0;
    let oldest = Number.POSITIVE_INFINITY;
    for (const worker of this.#workers) {
      const reach = worker.scan(since, mayMatch, each);
      requests += reach.requests;
      complete = Math.max(complete, reach.complete);
      oldest = Math.min(oldest, reach.oldest);
    }
    return {
      requests,
      ...(complete > 0 && { completeSince: new Date(complete).toISOString() }),
      ...(Number.isFinite(oldest) && { keptSince: new Date(oldest).toISOString() }),
    };
  }
}

function untilNow(): string {
  return new Date(Date.now() - WRITTEN_AFTER).toISOString();
}

function matches(record: RecordView, { since, route, errors, slow, where }: RecordQuery): boolean {
  if (record.endedAt < since) return false;
  if ((errors || slow) && !((errors && record.failed) || (slow && record.slow))) return false;
  if (route !== undefined && !record.isOf(route)) return false;
  return where === undefined || where.matches(record, () => false);
}

/**
 * False for a record that need not be read. It looks at the slot itself, whose writer may be changing it; so a record that it lets pass is
 * tested again.
 */
type Filter = (fields: SlotFields) => boolean;

/** Rules out most records by the length and the last character of their ids, and by the last digits of their trace ids. */
function mayHaveId(id: string): Filter {
  const last = id.charCodeAt(id.length - 1);
  const trace = id.length === TRACE_ID ? Number.parseInt(id.slice(-8), 16) : undefined;
  return (fields) =>
    (fields.idLength === id.length && fields.u8[fields.at + TEXTS + id.length - 1] === last) ||
    (trace !== undefined && fields.trace3 === trace);
}

/** The newest of what is added, at most `limit`; counts all. */
class Newest {
  found = 0;
  readonly #limit: number;
  #list: { readonly endedAt: number; readonly toJson: () => RequestRecord }[] = [];
  /** Older ones are not among the newest. */
  #floor = Number.NEGATIVE_INFINITY;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(record: RecordView): void {
    this.found++;
    const { endedAt } = record;
    if (endedAt <= this.#floor) return;
    this.#list.push({ endedAt, ...record.copy() });
    if (this.#list.length >= 2 * this.#limit + MOST_OF_ONE_ID) this.#cut();
  }

  #cut(): void {
    this.#list.sort((a, b) => b.endedAt - a.endedAt);
    this.#list.length = Math.min(this.#list.length, this.#limit);
    if (this.#list.length === this.#limit) this.#floor = this.#list.at(-1)?.endedAt ?? this.#floor;
  }

  all(): RequestRecord[] {
    this.#cut();
    return this.#list.map(({ toJson }) => toJson());
  }
}

/** How far the records of a worker reach back, in milliseconds since the epoch. */
interface Reach {
  /** All requests that ended later have records; 0: all of the worker. */
  readonly complete: number;
  /** Infinity: there is none. */
  readonly oldest: number;
  /** Records that were written in the time in question. */
  readonly requests: number;
}

class WorkerRecords {
  readonly #memory: RecorderMemory;
  readonly #reader: SlotReader;
  readonly #view: RecordView;

  constructor(memory: RecorderMemory, worker: number) {
    this.#memory = memory;
    this.#reader = new SlotReader(memory);
    this.#view = new RecordView(this.#reader, new NameReader(memory), worker);
  }

  /** Shows each record once that `mayMatch` lets pass, valid during the call. */
  scan(since: number, mayMatch: Filter, each: (record: RecordView) => void): Reach {
    const { recent, kept } = this.#memory;
    const shown = new Set<number>();
    let first = Number.POSITIVE_INFINITY;
    let last = 0;
    let inRing = 0;
    const count = (): void => {
      inRing++;
      const { number } = this.#reader.fields;
      last = Math.max(last, number);
      if (this.#view.endedAt >= since) first = Math.min(first, number);
    };
    const oldestKept = this.#scan(kept, count, mayMatch, (record) => {
      shown.add(this.#reader.fields.number);
      each(record);
    });
    inRing = 0;
    const oldestRecent = this.#scan(recent, count, mayMatch, (record) => {
      if (!shown.has(this.#reader.fields.number)) each(record);
    });
    // One slot may be in the hands of the writer.
    const turned = inRing >= recent.slots - 1;
    return {
      complete: turned ? oldestRecent : 0,
      oldest: Math.min(oldestKept, oldestRecent),
      requests: first > last ? 0 : last - first + 1,
    };
  }

  /** Shows each kept record, valid during the call. */
  eachKept(each: (record: RecordView) => void): void {
    const all = (): boolean => true;
    this.#scan(this.#memory.kept, () => {}, all, each);
  }

  /** Calls `count` for each record, of which only the head has been read. Returns when the oldest ended. */
  #scan(area: Area, count: () => void, mayMatch: Filter, each: (record: RecordView) => void): number {
    const newest = this.#reader.newestIn(area);
    let oldest = Number.POSITIVE_INFINITY;
    // In a ring from the newest on: then few of the others are among the newest that are looked for.
    for (let back = 0; back < area.slots; back++) {
      const slot = (newest - back + area.slots) % area.slots;
      if (!this.#reader.readHead(area, slot)) continue;
      oldest = Math.min(oldest, this.#view.endedAt);
      count();
      if (mayMatch(this.#reader.unsafeFields(area, slot)) && this.#reader.read(area, slot)) each(this.#view);
    }
    return oldest;
  }
}

/** What labels say where there is none. */
const UNKNOWN = "unknown";

/** The record in the copy of a reader. */
class RecordView implements Activation, TimedRequest {
  readonly #reader: SlotReader;
  readonly #names: NameReader;
  readonly #worker: number;
  /** By the text of the place. */
  readonly #places = new Map<string, PlaceLabels>();

  constructor(reader: SlotReader, names: NameReader, worker: number) {
    this.#reader = reader;
    this.#names = names;
    this.#worker = worker;
  }

  get endedAt(): number {
    const { startedAt, duration } = this.#reader.fields;
    return startedAt + duration;
  }

  get failed(): boolean {
    return isFailure(this.#reader.fields);
  }

  get slow(): boolean {
    return (this.#reader.fields.flags & FLAGS.slow) !== 0;
  }

  isOf(route: string): boolean {
    const label = this.#labels?.route;
    return label !== undefined && isCalled(label, route);
  }

  hasId(id: string): boolean {
    return this.#id === id || this.#traceId === id;
  }

  isNumber(worker: number, number: number): boolean {
    return worker === this.#worker && number === this.#reader.fields.number;
  }

  // ── for expressions ──

  get request(): RequestParts {
    return {
      method: this.#name("method") ?? "",
      scheme: this.#has(FLAGS.tls) ? "https" : "http",
      authority: this.#host,
      path: this.#path,
      search: "",
      version: this.#name("version") ?? "",
      headers: [],
      startTime: new Date(this.#reader.fields.startedAt),
      endTime: new Date(this.endedAt),
    };
  }

  get response(): ResponseParts {
    const { status, grpcStatus } = this.#reader.fields;
    return { status, headers: [], grpcStatus: grpcStatus === NO_GRPC_STATUS ? undefined : grpcStatus };
  }

  get backend(): unknown {
    return { name: this.#label("backend") };
  }

  get record(): RecordParts {
    const { code, reason, duration, attempts } = this.#reader.fields;
    return {
      route: this.#label("route") ?? "",
      listener: this.#label("listener") ?? "",
      endpoint: this.#name("endpoint") ?? "",
      error: errorOf(code) ?? "",
      reason: reasonOf(reason),
      policy: this.#decider?.policy ?? "",
      duration,
      attempts,
    };
  }

  // ── as an exemplar ──

  get isRequest(): boolean {
    return this.#reader.fields.kind === 0;
  }

  get route(): string {
    return this.#labels?.route ?? UNKNOWN;
  }

  get method(): string {
    return this.#name("method") ?? "";
  }

  get status(): number {
    return this.#reader.fields.status;
  }

  get duration(): number {
    return this.#reader.fields.duration;
  }

  get processing(): TimedRequest["processing"] {
    const { duration, beforeCall, untilAnswer } = this.#reader.fields;
    return untilAnswer === 0
      ? undefined
      : { request: beforeCall, response: Math.max(0, duration - beforeCall - untilAnswer) };
  }

  get ids(): TimedRequest["ids"] {
    return {
      record: recordId(this.#worker, this.#reader.fields.number),
      trace: this.#traceId,
      request: this.#id,
    };
  }

  // ── as data ──

  /** The record after this one has been read; as data only where it is needed, because that costs 50 times as much as the copy. */
  copy(): { readonly toJson: () => RequestRecord } {
    const saved = this.#reader.save();
    return {
      toJson: () => {
        this.#reader.restore(saved);
        return this.#toJson();
      },
    };
  }

  #toJson(): RequestRecord {
    const { fields } = this.#reader;
    const { startedAt, number, generation, status, grpcStatus, beforeCall, untilAnswer, received, sent } = fields;
    return withoutAbsent({
      id: this.#id,
      time: new Date(startedAt).toISOString(),
      kind: fields.kind === 0 ? undefined : kindOf(fields.kind),
      worker: this.#worker,
      number,
      generation,
      method: this.#name("method"),
      host: this.#host || undefined,
      path: this.#path,
      cut: this.#has(FLAGS.cut) || undefined,
      tls: this.#has(FLAGS.tls) || undefined,
      version: this.#name("version"),
      status,
      reason: reasonOf(fields.reason),
      error: errorOf(fields.code),
      grpcStatus: grpcStatus === NO_GRPC_STATUS ? undefined : grpcStatus,
      duration: rounded(fields.duration),
      beforeCall: beforeCall === 0 ? undefined : rounded(beforeCall),
      untilAnswer: untilAnswer === 0 ? undefined : rounded(untilAnswer),
      received,
      sent,
      bind: this.#label("bind"),
      gateway: this.#label("gateway"),
      listener: this.#label("listener"),
      route: this.#label("route"),
      routeRule: this.#label("route_rule"),
      backend: this.#label("backend"),
      endpoint: this.#name("endpoint"),
      attempts: fields.attempts || undefined,
      traceId: this.#traceId,
      client: this.#client,
      decider: this.#decider,
      slow: this.slow || undefined,
      kept: this.#has(FLAGS.kept) || undefined,
      notKept: this.#has(FLAGS.notKept) || undefined,
      leftOut: fields.leftOut || undefined,
    });
  }

  #has(flag: number): boolean {
    return (this.#reader.fields.flags & flag) !== 0;
  }

  #name(field: "method" | "host" | "version" | "endpoint" | "place" | "decider"): string | undefined {
    const { fields } = this.#reader;
    return this.#names.text(fields.epoch, fields[field]);
  }

  get #labels(): PlaceLabels | undefined {
    const text = this.#name("place");
    if (text === undefined) return undefined;
    let labels = this.#places.get(text);
    if (labels === undefined) {
      labels = placeLabels(text);
      this.#places.set(text, labels);
    }
    return labels;
  }

  #label(name: keyof PlaceLabels): string | undefined {
    const label = this.#labels?.[name];
    return label === UNKNOWN ? undefined : label;
  }

  get #decider(): Decider | undefined {
    const text = this.#name("decider");
    // Undefined also if the name had no room for all of the JSON.
    return text === undefined ? undefined : (jsonOf(text) as Decider | undefined);
  }

  get #id(): string | undefined {
    const { idLength } = this.#reader.fields;
    return idLength === 0 ? undefined : this.#reader.text(0, idLength);
  }

  get #host(): string {
    const { idLength, hostLength } = this.#reader.fields;
    return hostLength === 0 ? (this.#name("host") ?? "") : this.#reader.text(idLength, hostLength);
  }

  get #path(): string {
    const { idLength, hostLength, pathLength } = this.#reader.fields;
    return this.#reader.text(idLength + hostLength, pathLength);
  }

  get #client(): string | undefined {
    const { client0, client1, client2, client3, clientPort } = this.#reader.fields;
    if (clientPort === 0) return undefined;
    const bytes = Buffer.alloc(16);
    for (const [index, word] of [client0, client1, client2, client3].entries()) bytes.writeUInt32BE(word, 4 * index);
    return formatHostPort(addressOfBytes(bytes), clientPort);
  }

  get #traceId(): string | undefined {
    const { trace0, trace1, trace2, trace3 } = this.#reader.fields;
    if ((trace0 | trace1 | trace2 | trace3) === 0) return undefined;
    return [trace0, trace1, trace2, trace3].map((word) => word.toString(16).padStart(8, "0")).join("");
  }
}

/** To microseconds. */
function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

type Present<Values> = { [Name in keyof Values as undefined extends Values[Name] ? never : Name]: Values[Name] } & {
  [Name in keyof Values as undefined extends Values[Name] ? Name : never]?: Exclude<Values[Name], undefined>;
};

/** Without properties that are undefined. */
function withoutAbsent<Values extends object>(values: Values): Present<Values> {
  const present: { [name: string]: Values[keyof Values] } = {};
  // `Object.entries` and `fromEntries` take twice as long.
  for (const name in values) if (values[name] !== undefined) present[name] = values[name];
  return present as Present<Values>;
}
