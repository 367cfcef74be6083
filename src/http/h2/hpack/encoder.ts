/**
 * Encodes fields as header blocks of HTTP/2 (RFC 7541). It needs no list of volatile fields: a value enters the dynamic table when
 * its name is new or when it is sent twice in a row, so values that change every time stay out.
 */
import { latin1Slice, latin1Write } from "../../../net/node-internals.ts";
import type { Fields } from "../../message/message.ts";
import { DEFAULT_TABLE_SIZE, ENTRY_OVERHEAD } from "./decoder.ts";
import { INTEGER_BOUND, writeInteger, writeString } from "./primitives.ts";
import { SECRET_NAMES } from "./secrets.ts";
import { STATIC_NAMES, STATIC_SIZE, STATIC_VALUES } from "./static-table.ts";

/** Bytes of a field besides its text: its kind with the index, and two lengths. */
const FIELD_BOUND = 1 + 2 * INTEGER_BOUND;
/** Two table size updates. */
const UPDATE_BOUND = 2 * INTEGER_BOUND;

/** An entry that would push out half of the others is not worth it. */
const MAX_ENTRY = DEFAULT_TABLE_SIZE / 2;
/** Slots for the sizes of all entries, each of which counts at least ENTRY_OVERHEAD bytes. */
const SLOTS = DEFAULT_TABLE_SIZE / ENTRY_OVERHEAD;
/** Names that an encoder remembers: twice as many as the table can have entries. Limits the memory that new names can take. */
const MAX_NAMES = 2 * SLOTS;

/** Shorter cookies are easy to guess, so they are never indexed, as in nghttp2. Characters. */
const MIN_INDEXED_COOKIE = 20;

const INDEXED = 0x80;
const WITH_INDEXING = 0x40;
const TABLE_SIZE = 0x20;
const NEVER_INDEXED = 0x10;
const WITHOUT_INDEXING = 0x00;

/** A name in the static table: index of the first entry, and the values of its entries in order. */
interface StaticName {
  readonly first: number;
  readonly values: readonly string[];
}

const NO_STATIC: StaticName = { first: 0, values: [] };
const STATIC: ReadonlyMap<string, StaticName> = staticNames();

function staticNames(): Map<string, StaticName> {
  const names = new Map<string, StaticName>();
  for (let index = 1; index <= STATIC_SIZE; index++) {
    const name = STATIC_NAMES[index] as string;
    const value = STATIC_VALUES[index] as string;
    const { first, values } = names.get(name) ?? { first: index, values: [] };
    names.set(name, { first, values: [...values, value] });
  }
  return names;
}

/** What the encoder knows about a name. */
interface Name extends StaticName {
  /** Values of fewer characters are never indexed: 0 for most names, Infinity for secrets. */
  readonly secretBelow: number;
  /** Value of the newest entry, and its number; 0 = no entry so far. */
  value: string;
  entry: number;
  /** Fingerprint of the value that was sent last without an entry; 0 = the last one had an entry. */
  sent: number;
}

export class HpackEncoder {
  readonly #names = new Map<string, Name>();
  /** Entries have numbers from 1 on: the number of the newest one, and of the newest that was evicted. */
  #inserted = 0;
  #evicted = 0;
  /** Sizes of the entries, at number mod SLOTS. Begins with room for as many as most connections have. */
  readonly #sizes = new Array<number>(8);
  #size = 0;
  #capacity = DEFAULT_TABLE_SIZE;
  /** What the next block has to begin with: the smallest capacity since the last one; -1 = nothing (RFC 7541 4.2). */
  #smallest = -1;

  /** Adopts the peer's SETTINGS_HEADER_TABLE_SIZE, bytes, up to 4096; the next block announces it. */
  setTableSize(size: number): void {
    const capacity = Math.min(size, DEFAULT_TABLE_SIZE);
    if (capacity === this.#capacity) return;
    this.#smallest = this.#smallest < 0 ? capacity : Math.min(capacity, this.#smallest);
    this.#capacity = capacity;
    this.#evictTo(capacity);
  }

  /** Upper bound for the bytes of a block of these fields, table size updates included. Lists are flat: `[name0, value0, …]`. */
  bound(pseudo: readonly string[], fields: readonly string[]): number {
    let bytes = UPDATE_BOUND + ((pseudo.length + fields.length) >> 1) * FIELD_BOUND;
    for (let i = 0; i < pseudo.length; i++) bytes += (pseudo[i] as string).length;
    for (let i = 0; i < fields.length; i++) bytes += (fields[i] as string).length;
    return bytes;
  }

  /**
   * Writes the block of `pseudo`, then `fields`, to `out` from `at` on, where it has room for `bound`. Returns the end. Names are in
   * lower case; all text is latin1. The block has to be sent, and in this order: the peer's table depends on it.
   */
  encode(pseudo: readonly string[], fields: Fields, out: Buffer, at: number): number {
    if (this.#smallest >= 0) at = this.#writeTableSize(out, at);
    const { neverIndexed } = fields;
    if (neverIndexed !== undefined) {
      at = this.#encodeSome(pseudo, neverIndexed, out, at);
      return this.#encodeSome(fields, neverIndexed, out, at);
    }
    for (let i = 0; i < pseudo.length; i += 2) at = this.#field(pseudo[i] as string, pseudo[i + 1] as string, out, at);
    for (let i = 0; i < fields.length; i += 2) at = this.#field(fields[i] as string, fields[i + 1] as string, out, at);
    return at;
  }

  /** Fields of these names are never indexed, as their sender asked (RFC 7541 6.2.3). */
  #encodeSome(fields: readonly string[], neverIndexed: ReadonlySet<string>, out: Buffer, at: number): number {
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string;
      const value = fields[i + 1] as string;
      if (neverIndexed.has(name)) {
        const index = STATIC.get(name)?.first ?? 0;
        at = this.#literal(NEVER_INDEXED, 0x0f, index, name, value, out, at);
      } else at = this.#field(name, value, out, at);
    }
    return at;
  }

  #writeTableSize(out: Buffer, from: number): number {
    let at = from;
    if (this.#smallest < this.#capacity) at = writeInteger(out, at, TABLE_SIZE, 0x1f, this.#smallest);
    this.#smallest = -1;
    return writeInteger(out, at, TABLE_SIZE, 0x1f, this.#capacity);
  }

  #field(text: string, value: string, out: Buffer, at: number): number {
    const name = this.#names.get(text) ?? this.#meet(text);
    const values = name.values;
    for (let i = 0; i < values.length; i++) {
      if (values[i] === value) {
        out[at] = INDEXED | (name.first + i);
        return at + 1;
      }
    }
    const alive = name.entry > this.#evicted;
    if (alive && name.value === value) {
      name.sent = 0;
      return writeInteger(out, at, INDEXED, 0x7f, this.#indexOf(name.entry));
    }
    const index = name.first > 0 ? name.first : alive ? this.#indexOf(name.entry) : 0;
    if (value.length < name.secretBelow) return this.#literal(NEVER_INDEXED, 0x0f, index, text, value, out, at);
    const size = text.length + value.length + ENTRY_OVERHEAD;
    if (size > MAX_ENTRY || size > this.#capacity) {
      return this.#literal(WITHOUT_INDEXING, 0x0f, index, text, value, out, at);
    }
    const mark = fingerprint(value);
    const isNew = name.entry === 0 && name.sent === 0;
    if (!isNew && name.sent !== mark) {
      name.sent = mark;
      return this.#literal(WITHOUT_INDEXING, 0x0f, index, text, value, out, at);
    }
    const end = this.#literal(WITH_INDEXING, 0x3f, index, text, value, out, at);
    this.#insert(size);
    name.entry = this.#inserted;
    name.sent = 0;
    // A copy: the value may be a slice that keeps a whole message head in memory.
    name.value = latin1Slice(out, end - value.length, end);
    return end;
  }

  #literal(
    kind: number,
    prefix: number,
    index: number,
    name: string,
    value: string,
    out: Buffer,
    from: number,
  ): number {
    let at = writeInteger(out, from, kind, prefix, index);
    if (index === 0) at = writeString(out, at, name);
    return writeString(out, at, value);
  }

  #indexOf(entry: number): number {
    return STATIC_SIZE + 1 + this.#inserted - entry;
  }

  #meet(text: string): Name {
    if (this.#names.size >= MAX_NAMES) this.#forget();
    const { first, values } = STATIC.get(text) ?? NO_STATIC;
    const secretBelow = SECRET_NAMES.has(text) ? Number.POSITIVE_INFINITY : text === "cookie" ? MIN_INDEXED_COOKIE : 0;
    const name: Name = { first, values, secretBelow, value: "", entry: 0, sent: 0 };
    this.#names.set(first > 0 ? text : copy(text), name);
    return name;
  }

  /** Forgets the names without an entry. */
  #forget(): void {
    for (const [text, name] of this.#names) if (name.entry <= this.#evicted) this.#names.delete(text);
  }

  #insert(size: number): void {
    this.#evictTo(this.#capacity - size);
    this.#inserted += 1;
    this.#sizes[this.#inserted % SLOTS] = size;
    this.#size += size;
  }

  /** Removes the oldest entries until the rest has at most `size` bytes. */
  #evictTo(size: number): void {
    while (this.#size > size) {
      this.#evicted += 1;
      this.#size -= this.#sizes[this.#evicted % SLOTS] as number;
    }
  }
}

/**
 * Tells values apart well enough to notice one that repeats, without keeping it: its length and its last 24 characters. A false match
 * costs an entry. Never 0.
 */
function fingerprint(value: string): number {
  let hash = value.length;
  for (let i = Math.max(0, value.length - 24); i < value.length; i++)
    hash = (Math.imul(hash, 31) + value.charCodeAt(i)) | 0;
  return hash === 0 ? 1 : hash;
}

/** A copy of the text, which may be a slice of a larger one. */
function copy(text: string): string {
  const bytes = Buffer.allocUnsafe(text.length);
  latin1Write(bytes, text, 0);
  return latin1Slice(bytes, 0, text.length);
}
