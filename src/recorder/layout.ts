/**
 * The layout of a record: one table, from which both the writer's and the readers' access to its fields is made. A record is one slot of
 * `SLOT` bytes: numbers at the places of the table, then texts: the request's id, its host unless that is a name, and its path.
 */

type Width = "f64" | "f32" | "u32" | "u16" | "u8";

/** Every field, in the order of their places, in which each is aligned. */
const TABLE = {
  /** 0 while the record is being written, then `COMPLETE` and the low bits of `number`; see slots.ts. */
  sequence: "u32",
  /** Of `FLAGS`. */
  flags: "u32",
  /** Of the record among those of its worker, from 1 on. */
  number: "f64",
  /** Milliseconds since the epoch. */
  startedAt: "f64",
  /** Milliseconds. */
  duration: "f64",
  /** Bytes of the request body from the client, and of the response body to it; of connections and sessions, all bytes. */
  received: "f64",
  sent: "f64",
  /** Milliseconds from the start to the last attempt, and from there to the head of its response; 0: there was none. */
  beforeCall: "f32",
  untilAnswer: "f32",
  /** Of the configuration that was in effect. */
  generation: "u32",
  /** The names below are numbers of this epoch; see `Names`. A name is 0 if there is none. */
  epoch: "u32",
  /** See `Place`. */
  place: "u32",
  host: "u32",
  endpoint: "u32",
  method: "u32",
  version: "u32",
  /** See `Decider`. */
  decider: "u32",
  /** Of a kept record: how many after it, of the same route and for the same reason, were not kept. Changes after the record was written. */
  leftOut: "u32",
  /** The trace id of `traceparent`; all 0 without one. */
  trace0: "u32",
  trace1: "u32",
  trace2: "u32",
  trace3: "u32",
  /** The client's address as IPv6, where the configuration wants it. */
  client0: "u32",
  client1: "u32",
  client2: "u32",
  client3: "u32",
  clientPort: "u16",
  /** Of the response; 0 = none. */
  status: "u16",
  /** See `Kind`; 0 = a request. */
  kind: "u8",
  /** A number of `REASONS`. */
  reason: "u8",
  /** Of the error; 0 = none. */
  code: "u8",
  /** Attempts to call a backend; 255 stands for more too. */
  attempts: "u8",
  /** The status of a gRPC call; `NO_GRPC_STATUS` without one. */
  grpcStatus: "u8",
  /** Characters of the texts: the request's id, its host, and its path without query. */
  idLength: "u8",
  hostLength: "u8",
  pathLength: "u8",
} as const satisfies Readonly<Record<string, Width>>;

export type Field = keyof typeof TABLE;

const BYTES: Readonly<Record<Width, number>> = { f64: 8, f32: 4, u32: 4, u16: 2, u8: 1 };

interface FieldPlace {
  readonly width: Width;
  /** Bytes from the beginning of the slot. */
  readonly offset: number;
  readonly bytes: number;
}

function placesOf(table: Readonly<Record<Field, Width>>): Readonly<Record<Field, FieldPlace>> {
  let offset = 0;
  const places = Object.entries(table).map(([name, width]): [string, FieldPlace] => {
    const place = { width, offset, bytes: BYTES[width] };
    offset += place.bytes;
    return [name, place];
  });
  return Object.fromEntries(places) as Record<Field, FieldPlace>;
}

/** Where each field is within a slot. */
export const LAYOUT = placesOf(TABLE);

/** Bytes of a slot: four lines of the processor's cache. */
export const SLOT = 256;
/** Where the texts begin. */
export const TEXTS = Math.max(...Object.values(LAYOUT).map(({ offset, bytes }) => offset + bytes));

/** Set in `sequence` of a complete record. */
export const COMPLETE = 0x8000_0000;

export const NO_GRPC_STATUS = 255;

/** What `flags` can say. */
export const FLAGS = {
  /** Slower than usual for its route; see `RouteHistory`. */
  slow: 1,
  /** Kept beyond the turn of the ring. */
  kept: 2,
  /** A text was longer than the slot has room for. */
  cut: 4,
  /** The backend was chosen by the route, and policies let the request reach it. */
  reachedBackend: 8,
  tls: 16,
  /** It failed or was slow, but is not kept: `leftOut` of an earlier record counts it. */
  notKept: 32,
} as const;

/** What a record is about: `unreadable` a request that could not be parsed, `session` one of UDP. */
const KINDS = ["request", "unreadable", "connection", "refused", "session"] as const;
export type Kind = (typeof KINDS)[number];

export function kindNumber(kind: Kind): number {
  return KINDS.indexOf(kind);
}

export function kindOf(number: number): Kind {
  return KINDS[number] ?? "request";
}

/** The arrays over one memory in which fields are read and written. */
class Arrays {
  readonly f64: Float64Array;
  readonly f32: Float32Array;
  readonly u32: Uint32Array;
  readonly u16: Uint16Array;
  readonly u8: Uint8Array;
  /** Bytes from the beginning of the memory to the current slot. */
  at = 0;

  constructor(memory: SharedArrayBuffer | ArrayBuffer) {
    this.f64 = new Float64Array(memory);
    this.f32 = new Float32Array(memory);
    this.u32 = new Uint32Array(memory);
    this.u16 = new Uint16Array(memory);
    this.u8 = new Uint8Array(memory);
  }
}

/** The fields of one slot at a time; `at` says which. */
export type SlotFields = Arrays & { [Name in Field]: number };

/** A property for each width: fields of one width share its code, which the compiler of V8 inlines into that of the caller. */
const PROPERTY: Readonly<Record<Width, (index: number) => PropertyDescriptor & ThisType<Arrays>>> = {
  f64: (index) => ({
    get() {
      return this.f64[(this.at >>> 3) + index];
    },
    set(value: number) {
      this.f64[(this.at >>> 3) + index] = value;
    },
  }),
  f32: (index) => ({
    get() {
      return this.f32[(this.at >>> 2) + index];
    },
    set(value: number) {
      this.f32[(this.at >>> 2) + index] = value;
    },
  }),
  u32: (index) => ({
    get() {
      return this.u32[(this.at >>> 2) + index];
    },
    set(value: number) {
      this.u32[(this.at >>> 2) + index] = value;
    },
  }),
  u16: (index) => ({
    get() {
      return this.u16[(this.at >>> 1) + index];
    },
    set(value: number) {
      this.u16[(this.at >>> 1) + index] = value;
    },
  }),
  u8: (index) => ({
    get() {
      return this.u8[this.at + index];
    },
    set(value: number) {
      this.u8[this.at + index] = value;
    },
  }),
};

for (const [name, { width, offset, bytes }] of Object.entries(LAYOUT))
  Object.defineProperty(Arrays.prototype, name, PROPERTY[width](offset / bytes));

/** Access to the fields of the slots in a memory. */
export function fieldsIn(memory: SharedArrayBuffer | ArrayBuffer): SlotFields {
  return new Arrays(memory) as SlotFields;
}
