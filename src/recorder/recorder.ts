import { BoundedCache } from "../base/bounded-cache.ts";
import { SERVER_FAILURES } from "../base/grpc-codes.ts";
import { groupsOfAddress } from "../base/ip-address.ts";
import type { Origin } from "../base/origin.ts";
import { reasonNumber } from "./codes.ts";
import { KeptSlots, RouteHistory } from "./kept.ts";
import { FLAGS, NO_GRPC_STATUS, type SlotFields } from "./layout.ts";
import type { RecorderMemory } from "./memory.ts";
import { LastName, Name, NameReader, Names } from "./names.ts";
import type { Sampler } from "./sampler.ts";
import { SlotReader, SlotWriter } from "./slots.ts";

/** The part of the configuration that a record belongs to, as labels of the request metrics; `unknown` for parts that were not reached. */
const PLACE_LABELS = ["bind", "protocol", "gateway", "listener", "route", "route_rule", "backend"] as const;
export type PlaceLabels = Readonly<Record<(typeof PLACE_LABELS)[number], string>>;

/** The part of the configuration that ended a request. */
export interface Decider {
  /** A kind of policy. */
  readonly policy?: string | undefined;
  readonly phase?: string | undefined;
  readonly rule?: number | undefined;
  readonly origin?: Origin | undefined;
}

/** Separates texts within a name; no name of a configuration has it. */
const SEPARATOR = "\u0000";
/** The class of kept records of slow requests, beside those of reasons. */
const SLOW = 255;
/** Routes whose histories are remembered. */
const MAX_HISTORIES = 20_000;
/** Milliseconds after which the clock of the wall is compared with that of the thread again. */
const CLOCK_PERIOD = 1000;

/** A place of the configuration, as its owner keeps it for its records. */
export class Place extends Name {
  readonly history: RouteHistory;

  constructor(text: string, history: RouteHistory) {
    super(text);
    this.history = history;
  }
}

export function recordId(worker: number, number: number): string {
  return `${worker}-${number}`;
}

/** The labels in the text of a place. */
export function placeLabels(text: string): PlaceLabels {
  const values = text.split(SEPARATOR);
  const labels = PLACE_LABELS.map((label, index) => [label, values[index] ?? ""]);
  return Object.fromEntries(labels) as Record<(typeof PLACE_LABELS)[number], string>;
}

function placeText(labels: PlaceLabels): string {
  return PLACE_LABELS.map((label) => labels[label]).join(SEPARATOR);
}

/** The part of a place that names the route. */
function routeKey({ bind, gateway, listener, route, route_rule }: PlaceLabels): string {
  return [bind, gateway, listener, route, route_rule].join(SEPARATOR);
}

/**
 * Writes the records of one worker, each when its request or connection is over. Continues with what an earlier worker has left in the memory.
 *
 * A record begins with `open`, whose fields the caller sets; the texts follow, and `close` publishes it. Nothing is allocated for it unless
 * it is kept.
 */
export class Recorder {
  readonly #names: Names;
  readonly #memory: RecorderMemory;
  /** Records and samples have the addresses of clients. */
  readonly clientAddress: boolean;
  /** Undefined: no samples are taken. */
  readonly sampler: Sampler | undefined;
  readonly #writer: SlotWriter;
  readonly #kept: KeptSlots;
  readonly #histories = new BoundedCache<RouteHistory>(MAX_HISTORIES);
  // The texts that records had last.
  readonly #method = new LastName();
  readonly #version = new LastName();
  readonly #host = new LastName();
  readonly #endpoint = new LastName();
  readonly #otherDecider = new LastName();
  /** By their origins. */
  readonly #deciders = new WeakMap<Origin, Name>();
  readonly #worker: number;
  #number: number;
  #clockRead = Number.NEGATIVE_INFINITY;
  #epochAt0 = 0;
  #before = 0;

  /** `worker`: whose records these are. */
  constructor(memory: RecorderMemory, worker: number, clientAddress = false, sampler?: Sampler) {
    this.#worker = worker;
    this.clientAddress = clientAddress;
    this.sampler = sampler;
    this.#memory = memory;
    this.#names = new Names(memory);
    this.#writer = new SlotWriter(memory);
    const { newest, kept } = leftIn(memory);
    this.#number = newest;
    this.#kept = new KeptSlots(memory.kept.slots, new Set(kept.map(({ slot }) => slot)));
    for (const { slot, place, reason } of kept) this.#kept.add(this.#historyOf(placeLabels(place)).class(reason), slot);
  }

  /** The id of the newest record, which finds it among those of all workers: `<worker>-<number>`. */
  get newestId(): string {
    return recordId(this.#worker, this.#number);
  }

  place(labels: PlaceLabels): Place {
    return new Place(placeText(labels), this.#historyOf(labels));
  }

  /** The number of what ended a request. */
  decider(decider: Decider): number {
    const { origin } = decider;
    if (origin === undefined) return this.#names.find(JSON.stringify(decider), this.#otherDecider);
    // A policy has an origin of its own for each rule, so the origin stands for all of it.
    let name = this.#deciders.get(origin);
    if (name === undefined) {
      name = new Name(JSON.stringify(decider));
      this.#deciders.set(origin, name);
    }
    return this.#names.of(name);
  }

  #historyOf(labels: PlaceLabels): RouteHistory {
    const key = routeKey(labels);
    let history = this.#histories.get(key);
    if (history === undefined) {
      history = new RouteHistory();
      this.#histories.set(key, history);
    }
    return history;
  }

  /** Begins a record; `startedAt`, `endedAt`: `performance.now()` ms. */
  open(place: Place, startedAt: number, endedAt: number): SlotFields {
    const names = this.#names;
    names.makeRoom();
    if (endedAt - this.#clockRead >= CLOCK_PERIOD) {
      this.#clockRead = endedAt;
      this.#epochAt0 = Date.now() - performance.now();
    }
    const { recent } = this.#memory;
    const number = ++this.#number;
    const fields = this.#writer.open(recent, number % recent.slots);
    this.#before = 0;
    fields.number = number;
    fields.startedAt = this.#epochAt0 + startedAt;
    fields.duration = endedAt - startedAt;
    fields.epoch = names.epoch;
    fields.place = names.of(place);
    fields.grpcStatus = NO_GRPC_STATUS;
    return fields;
  }

  /** Method and version of the request. */
  message(method: string, version: string): void {
    const { fields } = this.#writer;
    fields.method = this.#names.findOfClient(method, this.#method);
    fields.version = this.#names.find(version, this.#version);
  }

  /** The address of the client, if records have them. */
  client(address: string, port: number): void {
    const groups = this.clientAddress ? groupsOfAddress(address) : undefined;
    if (groups === undefined) return;
    const { fields } = this.#writer;
    const word = (index: number): number => (groups[2 * index] ?? 0) * 0x1_0000 + (groups[2 * index + 1] ?? 0);
    fields.clientPort = port;
    fields.client0 = word(0);
    fields.client1 = word(1);
    fields.client2 = word(2);
    fields.client3 = word(3);
  }

  /** The endpoint that was called last. `ofClient`: the client has chosen it. */
  endpoint(name: string, ofClient: boolean): void {
    this.#writer.fields.endpoint = ofClient
      ? this.#names.findOfClient(name, this.#endpoint)
      : this.#names.find(name, this.#endpoint);
  }

  /** The id of the request, its host in lower case, and its path without query, as latin1. */
  texts(id: string | undefined, host: string, path: string): void {
    const { fields } = this.#writer;
    if (id !== undefined) fields.idLength = this.#write(id);
    if (host !== "") {
      fields.host = this.#names.findOfClient(host, this.#host);
      if (fields.host === 0) fields.hostLength = this.#write(host);
    }
    fields.pathLength = this.#write(path);
  }

  #write(text: string): number {
    const written = this.#writer.write(text, this.#before);
    if (written < text.length) this.#writer.fields.flags |= FLAGS.cut;
    this.#before += written;
    return written;
  }

  /** Publishes the record, and keeps it if it is one of those that matter. `now`: `performance.now()` ms. */
  close({ history }: Place, now: number): void {
    const { fields } = this.#writer;
    const failed = isFailure(fields);
    // How long sessions take says nothing, and a failure is kept in any case.
    const slow = fields.kind === 0 && !failed && history.isSlow(fields.duration);
    if (!slow && !failed) {
      this.#writer.close();
      return;
    }
    if (slow) fields.flags |= FLAGS.slow;
    const owner = history.class(failed ? fields.reason : SLOW);
    const { kept } = this.#memory;
    const { newest } = owner;
    if (owner.admits(now)) {
      fields.flags |= FLAGS.kept;
      this.#writer.close();
      this.#writer.copyTo(kept, this.#kept.claim(owner));
      return;
    }
    if (newest !== undefined) fields.flags |= FLAGS.notKept;
    this.#writer.close();
    if (newest !== undefined) this.#writer.countLeftOut(kept, newest);
  }
}

/** Whether a record is kept for how it ended: rejected or given up by the gateway, or with a failure of the backend. */
export function isFailure({ reason, status, grpcStatus }: SlotFields): boolean {
  return isFailedResponse(reason, status) || (grpcStatus !== NO_GRPC_STATUS && isFailedCall(reason, grpcStatus));
}

/**
 * Whether the gRPC status of a call means a failure, whatever its HTTP status: the server failed, or the gateway itself ended the call. `reason`:
 * its number.
 */
export function isFailedCall(reason: number, grpcStatus: number): boolean {
  return SERVER_FAILURES.has(grpcStatus) || (grpcStatus !== 0 && reason > reasonNumber("DirectResponse"));
}

/** The same without the status of gRPC, which labels of metrics do not have. `reason`: its number. */
export function isFailedResponse(reason: number, status: number): boolean {
  // The gateway sends redirects and other responses, too, for reasons of its own.
  return status >= 500 || (reason > reasonNumber("DirectResponse") && (status === 0 || status >= 400));
}

interface Left {
  readonly slot: number;
  readonly place: string;
  /** The class in which it is kept. */
  readonly reason: number;
}

/** What an earlier worker has left: the highest number, and the kept records, oldest first. */
function leftIn(memory: RecorderMemory): { readonly newest: number; readonly kept: readonly Left[] } {
  const reader = new SlotReader(memory);
  const names = new NameReader(memory);
  const { fields } = reader;
  let newest = 0;
  for (let slot = 0; slot < memory.recent.slots; slot++)
    if (reader.read(memory.recent, slot)) newest = Math.max(newest, fields.number);
  const kept: (Left & { readonly number: number })[] = [];
  for (let slot = 0; slot < memory.kept.slots; slot++) {
    if (!reader.read(memory.kept, slot)) continue;
    const { number } = fields;
    newest = Math.max(newest, number);
    const reason = isFailure(fields) ? fields.reason : SLOW;
    kept.push({ slot, number, reason, place: names.text(fields.epoch, fields.place) ?? "" });
  }
  return { newest, kept: kept.sort((a, b) => a.number - b.number) };
}
