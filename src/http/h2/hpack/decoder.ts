/**
 * Decodes header blocks of HTTP/2 (RFC 7541). Fields are checked when they enter the dynamic table, so decoding a block that repeats the
 * last one is little more than a loop over its bytes.
 */
import { latin1Slice } from "../../../net/node-internals.ts";
import { COLUMN, COLUMN_BITS, NAMES, NEXT, START } from "../../message/field-names.ts";
import type { HeaderList, Latin1 } from "../../message/message.ts";
import { COLON, isBlank, TOKEN, VALUE } from "../../message/syntax.ts";
import { READER } from "./primitives.ts";
import { noteNeverIndexed } from "./secrets.ts";
import { STATIC_NAMES, STATIC_SIZE, STATIC_VALUES } from "./static-table.ts";

/** What an entry costs beyond its bytes, in tables and in lists (RFC 7541 4.1, RFC 9113 6.5.2). */
export const ENTRY_OVERHEAD = 32;
/** Initial size of a dynamic table (RFC 9113 6.5.2). */
export const DEFAULT_TABLE_SIZE = 4096;

/** Limits of what the decoder stores. */
export interface HpackLimits {
  /** The SETTINGS_HEADER_TABLE_SIZE that we announced, bytes: the peer's encoder may use a table up to this size. */
  readonly tableSize: number;
  /** Bytes of a field section: names, values and 32 for each field (RFC 9113 6.5.2). */
  readonly maxListSize: number;
  /** Fields of a section, pseudo-fields included. */
  readonly maxFields: number;
}

/** The result of decoding a block. One instance serves many blocks: decoding overwrites every property. */
export class FieldSection {
  /** `[name0, value0, …]` in order of arrival, latin1 text. A new array for each block, which the message keeps. */
  fields: HeaderList = [];
  /** What makes the message malformed (RFC 9113 8.2.1); `` if nothing does. The text quotes nothing from the message. */
  malformed = "";
  /** A limit was exceeded: the fields from there on are missing. The dynamic table is still correct. */
  tooLarge = false;
  /** Content-Type of a section that is too large, if it came after the limit: it decides the form of the response. */
  lateContentType: Latin1 | "" = "";
}

const CONTENT_TYPE = "content-type";

const BAD_NAME = "a field name has an upper-case letter or an invalid character";
const BAD_VALUE = "a field value has a control character, or white space around it";

const BAD_INDEX = "the header block refers to a table entry that does not exist";
const BAD_UPDATE = "the header block sets the table size above the limit";
const LATE_UPDATE = "the header block sets the table size after a field";

/** 1 for characters that a field name of HTTP/2 may have: those of tokens, without upper-case letters. */
const NAME = TOKEN.map((token, code) => (code >= 0x41 && code <= 0x5a ? 0 : token));

/** Entries of the first table that is allocated: most connections need no more, and idle ones should be cheap. */
const FIRST_CAPACITY = 8;

export class HpackDecoder {
  readonly #maxTableSize: number;
  readonly #maxListSize: number;
  readonly #maxTexts: number;

  /** The dynamic table, a ring whose length is a power of two: the entry with number n, from 0 on, is at `n & (length - 1)`. */
  #names: string[] = [];
  #values: string[] = [];
  /** Numbers of entries inserted and evicted so far. */
  #inserted = 0;
  #evicted = 0;
  /** Bytes of the entries, and the limit that the peer has set. */
  #size = 0;
  #capacity = DEFAULT_TABLE_SIZE;
  /** What is malformed about entries, by their numbers; undefined until the peer sends a malformed one. */
  #faults: Map<number, string> | undefined;

  constructor(limits: HpackLimits) {
    this.#maxTableSize = limits.tableSize;
    this.#maxListSize = limits.maxListSize;
    this.#maxTexts = 2 * limits.maxFields;
  }

  /**
   * Decodes the block `buffer[from, to)`. Returns undefined, or the error of the compression: then the connection has to end with
   * COMPRESSION_ERROR, because the dynamic tables of the two sides differ.
   */
  decode(buffer: Buffer, from: number, to: number, into: FieldSection): string | undefined {
    const fields: HeaderList = [];
    into.fields = fields;
    into.malformed = "";
    into.tooLarge = false;
    into.lateContentType = "";
    let listSize = 0;
    let at = from;
    let updatable = true;
    while (at < to) {
      const byte = buffer[at++] as number;
      let name: string;
      let value: string;
      let fault = "";
      if (byte >= 0x80) {
        let index = byte & 0x7f;
        if (index === 0x7f) {
          index = READER.integer(buffer, at, to, 0x7f);
          if (index < 0) return READER.error;
          at = READER.at;
        }
        if (index <= STATIC_SIZE) {
          if (index === 0) return BAD_INDEX;
          name = STATIC_NAMES[index] as string;
          value = STATIC_VALUES[index] as string;
        } else {
          const number = this.#inserted - (index - STATIC_SIZE);
          if (number < this.#evicted) return BAD_INDEX;
          // Skipped early: each byte of a block may refer to the same large entry.
          const slot = number & (this.#names.length - 1);
          if (into.tooLarge && this.#names[slot] !== CONTENT_TYPE) continue;
          name = this.#names[slot] as string;
          value = this.#values[slot] as string;
          if (this.#faults !== undefined) fault = this.#faults.get(number) ?? "";
        }
      } else if (byte >= 0x20 && byte < 0x40) {
        if (!updatable) return LATE_UPDATE;
        let capacity = byte & 0x1f;
        if (capacity === 0x1f) {
          capacity = READER.integer(buffer, at, to, 0x1f);
          if (capacity < 0) return READER.error;
          at = READER.at;
        }
        if (capacity > this.#maxTableSize) return BAD_UPDATE;
        this.#capacity = capacity;
        this.#evictTo(capacity);
        continue;
      } else {
        const indexed = byte >= 0x40;
        const skipped = into.tooLarge && !indexed;
        const mask = indexed ? 0x3f : 0x0f;
        let index = byte & mask;
        if (index === mask) {
          index = READER.integer(buffer, at, to, mask);
          if (index < 0) return READER.error;
          at = READER.at;
        }
        if (index === 0) {
          if (!READER.string(buffer, at, to)) return READER.error;
          at = READER.at;
          name = skipped ? "" : fieldName();
          if (name === "" && !skipped) {
            name = text();
            fault = BAD_NAME;
          }
        } else if (index <= STATIC_SIZE) {
          name = STATIC_NAMES[index] as string;
        } else {
          const number = this.#inserted - (index - STATIC_SIZE);
          if (number < this.#evicted) return BAD_INDEX;
          name = this.#names[number & (this.#names.length - 1)] as string;
          if (this.#faults?.get(number) === BAD_NAME) fault = BAD_NAME;
        }
        if (!READER.string(buffer, at, to)) return READER.error;
        at = READER.at;
        if (skipped) continue;
        if (!isValue() && fault === "") fault = BAD_VALUE;
        value = text();
        if (indexed) this.#insert(name, value, fault);
        else if (byte >= 0x10) noteNeverIndexed(fields, name);
      }
      updatable = false;
      listSize += name.length + value.length + ENTRY_OVERHEAD;
      if (listSize > this.#maxListSize || fields.length >= this.#maxTexts) into.tooLarge = true;
      if (into.tooLarge) {
        if (name === CONTENT_TYPE && fault === "") into.lateContentType = value as Latin1;
        continue;
      }
      // May be invalid text; readers of the section check `malformed` first.
      fields.push(name, value as Latin1);
      if (fault !== "" && into.malformed === "") into.malformed = fault;
    }
    return undefined;
  }

  #insert(name: string, value: string, fault: string): void {
    const size = name.length + value.length + ENTRY_OVERHEAD;
    // An entry larger than the table empties it (RFC 7541 4.4).
    this.#evictTo(this.#capacity - size);
    if (size > this.#capacity) return;
    if (this.#inserted - this.#evicted === this.#names.length) this.#grow();
    const slot = this.#inserted & (this.#names.length - 1);
    this.#names[slot] = name;
    this.#values[slot] = value;
    if (fault !== "") {
      this.#faults ??= new Map();
      this.#faults.set(this.#inserted, fault);
    }
    this.#inserted += 1;
    this.#size += size;
  }

  /** Removes the oldest entries until the rest has at most `size` bytes, or nothing is left. */
  #evictTo(size: number): void {
    while (this.#size > size && this.#evicted < this.#inserted) {
      const slot = this.#evicted & (this.#names.length - 1);
      this.#size -= (this.#names[slot] as string).length + (this.#values[slot] as string).length + ENTRY_OVERHEAD;
      this.#names[slot] = "";
      this.#values[slot] = "";
      this.#faults?.delete(this.#evicted);
      this.#evicted += 1;
    }
  }

  #grow(): void {
    const length = Math.max(2 * this.#names.length, FIRST_CAPACITY);
    const names = new Array<string>(length).fill("");
    const values = new Array<string>(length).fill("");
    for (let number = this.#evicted; number < this.#inserted; number++) {
      const slot = number & (this.#names.length - 1);
      names[number & (length - 1)] = this.#names[slot] as string;
      values[number & (length - 1)] = this.#values[slot] as string;
    }
    this.#names = names;
    this.#values = values;
  }
}

/** The string of READER. */
function text(): string {
  const { bytes, start, end } = READER;
  return start === end ? "" : latin1Slice(bytes, start, end);
}

/** The string of READER as a field name: the same string object for each occurrence of a known name. `` if it is not a valid name. */
function fieldName(): string {
  const { bytes, start, end } = READER;
  const pseudo = bytes[start] === COLON;
  const first = pseudo ? start + 1 : start;
  let row = START;
  let valid = first < end ? 1 : 0;
  for (let i = first; i < end; i++) {
    const code = bytes[i] as number;
    valid &= NAME[code] as number;
    row = NEXT[(row << COLUMN_BITS) | (COLUMN[code] as number)] as number;
  }
  if (valid === 0) return "";
  return (pseudo ? undefined : NAMES[row]) ?? latin1Slice(bytes, start, end);
}

/** Whether the string of READER may be a value (RFC 9113 8.2.1; no control characters, as in HTTP/1.1, where CR and LF would split). */
function isValue(): boolean {
  const { bytes, start, end } = READER;
  if (start === end) return true;
  let valid = 1;
  for (let i = start; i < end; i++) valid &= VALUE[bytes[i] as number] as number;
  return valid === 1 && !isBlank(bytes[start] as number) && !isBlank(bytes[end - 1] as number);
}
