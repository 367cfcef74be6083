/**
 * How records are published to other threads. `sequence` says whether a slot is complete: the writer makes it incomplete before it changes
 * anything else. A reader copies the slot and accepts the copy if the slot was complete before and after, with the same number. A
 * worker may be killed at any point of this: then the slot stays incomplete until it is used again.
 */
import { storeInOrder } from "../base/store-in-order.ts";
import { latin1Slice, latin1Write } from "../net/node-internals.ts";
import { COMPLETE, fieldsIn, LAYOUT, SLOT, type SlotFields, TEXTS } from "./layout.ts";
import { type Area, fence, type RecorderMemory } from "./memory.ts";

const SEQUENCE = LAYOUT.sequence.offset / Int32Array.BYTES_PER_ELEMENT;
/** The fields as cells of eight bytes, without the first, in which `sequence` and `flags` are. */
const FIRST = 1;
const END = Math.ceil(TEXTS / Float64Array.BYTES_PER_ELEMENT);
/** Cells of four bytes in a line of the processor's cache, and the lines of a slot. */
const LINE = 64 / Int32Array.BYTES_PER_ELEMENT;
const LINES = SLOT / 64;
/** Cells of eight bytes in the head of a record: it ends with `duration`. */
const HEAD = (LAYOUT.duration.offset + LAYOUT.duration.bytes) / Float64Array.BYTES_PER_ELEMENT;
const CELLS = SLOT / Float64Array.BYTES_PER_ELEMENT;

/** Writes slots, from the one thread that may. */
export class SlotWriter {
  /** Of the slot that `open` has opened. */
  readonly fields: SlotFields;
  readonly #cells: Int32Array;
  readonly #text: Buffer;

  constructor({ buffer }: RecorderMemory) {
    this.fields = fieldsIn(buffer);
    this.#cells = new Int32Array(buffer);
    this.#text = Buffer.from(buffer);
  }

  /** Makes the slot incomplete, with all its numbers 0. `slot`: an index of the area. */
  open(area: Area, slot: number): SlotFields {
    const { fields } = this;
    const at = area.start + slot * SLOT;
    fields.at = at;
    storeInOrder(this.#cells, (at >>> 2) + SEQUENCE, 0);
    fields.flags = 0;
    const { f64 } = fields;
    const first = at >>> 3;
    // `fill` costs several times as much.
    for (let i = FIRST; i < END; i++) f64[first + i] = 0;
    return fields;
  }

  /** Writes a text behind `before` other characters; returns how many there was room for. */
  write(text: string, before: number): number {
    const written = Math.min(text.length, SLOT - TEXTS - before);
    if (written > 0) latin1Write(this.#text, text, this.fields.at + TEXTS + before, written);
    return written;
  }

  /** Makes the slot complete. */
  close(): void {
    const { fields } = this;
    const at = fields.at >>> 2;
    Atomics.store(this.#cells, at + SEQUENCE, sequenceOf(fields.number));
    this.#fetch(at + SLOT / Int32Array.BYTES_PER_ELEMENT);
  }

  /**
   * Loads the slot that begins at this cell into the cache, because it is likely to be written next: without it, `open` waits for memory, and
   * half of the records of a gateway under load take more than 0.58 µs instead of 0.43. Atomics, because V8 omits other loads whose
   * values nothing uses.
   */
  #fetch(at: number): void {
    const cells = this.#cells;
    // After the last slot, the memory ends.
    if (at >= cells.length) return;
    for (let line = 0; line < LINES; line++) Atomics.load(cells, at + line * LINE);
  }

  /** Adds to `leftOut` of a complete slot. One aligned number changes, so a reader has it from before or after. */
  countLeftOut(area: Area, slot: number): void {
    const { fields } = this;
    fields.at = area.start + slot * SLOT;
    fields.leftOut++;
  }

  /** Writes the slot that was closed last once more, to another place. */
  copyTo(area: Area, slot: number): void {
    const { u32, at: from } = this.fields;
    const { at: to } = this.open(area, slot);
    for (let i = SEQUENCE + 1; i < SLOT / 4; i++) u32[(to >>> 2) + i] = u32[(from >>> 2) + i] ?? 0;
    this.close();
  }
}

/** Reads slots from any thread: copies them one at a time. */
export class SlotReader {
  /** Of the copy. */
  readonly fields: SlotFields;
  readonly #head: Int32Array;
  readonly #cells: Int32Array;
  readonly #doubles: Float64Array;
  readonly #text: Buffer;
  readonly #shared: SlotFields;

  constructor({ buffer, head }: RecorderMemory) {
    const copy = new ArrayBuffer(SLOT);
    this.#shared = fieldsIn(buffer);
    this.fields = fieldsIn(copy);
    this.#text = Buffer.from(copy);
    this.#head = head;
    this.#cells = new Int32Array(buffer);
    this.#doubles = new Float64Array(buffer);
  }

  /** Copies a slot into `fields`; false if it is not complete. */
  read(area: Area, slot: number): boolean {
    return this.#copy(area, slot, CELLS);
  }

  /** Copies only `number`, `startedAt` and `duration`, which are in one line of the cache; otherwise like `read`. */
  readHead(area: Area, slot: number): boolean {
    return this.#copy(area, slot, HEAD);
  }

  #copy(area: Area, slot: number, cells: number): boolean {
    const at = area.start + slot * SLOT;
    const cell = (at >>> 2) + SEQUENCE;
    const before = Atomics.load(this.#cells, cell);
    if (before === 0) return false;
    const { f64 } = this.fields;
    const from = at >>> 3;
    for (let i = 0; i < cells; i++) f64[i] = this.#doubles[from + i] ?? 0;
    fence(this.#head);
    return Atomics.load(this.#cells, cell) === before && before === sequenceOf(this.fields.number);
  }

  /**
   * The fields in the slot itself, of which any may be of another record than the others. They tell what need not be read: at worst, a record
   * is left out that is about to be overwritten.
   */
  unsafeFields(area: Area, slot: number): SlotFields {
    this.#shared.at = area.start + slot * SLOT;
    return this.#shared;
  }

  /**
   * The newest slot of a ring, or one after it that is not complete. Numbers rise from the first slot to the newest, and those
   * behind it are lower: so it is found by halving.
   */
  newestIn({ start, slots }: Area): number {
    const sequenceAt = (slot: number): number =>
      Atomics.load(this.#cells, ((start + slot * SLOT) >>> 2) + SEQUENCE) >>> 0;
    const first = sequenceAt(0);
    let newest = 0;
    let end = slots;
    while (end - newest > 1) {
      const middle = (newest + end) >>> 1;
      if (sequenceAt(middle) >= first) newest = middle;
      else end = middle;
    }
    return newest;
  }

  /** All of the copy, for `restore`: a string, because thousands of small buffers would leave gaps in the memory of the process. */
  save(): string {
    return latin1Slice(this.#text, 0, SLOT);
  }

  /** Makes `fields` what they were at `save`. */
  restore(saved: string): void {
    latin1Write(this.#text, saved, 0, SLOT);
  }

  /** `length` characters of the texts, from the character `from` on. */
  text(from: number, length: number): string {
    return latin1Slice(this.#text, TEXTS + from, TEXTS + from + length);
  }
}

/** As a cell of an Int32Array holds it. */
function sequenceOf(number: number): number {
  return (number & ~COMPLETE) | COMPLETE;
}
